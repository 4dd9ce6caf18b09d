"""A console without its web: stores with a worker, for all tests of a file."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from app.embedding import embed
from app.jobs.engine import VERBS, Engine
from app.jobs.work import Verb
from app.store.stores import Stores


@contextmanager
def at_work(
    opened: Stores, verbs: Mapping[str, Verb] = VERBS, *, with_agent: bool = False
) -> Iterator[Stores]:
    """*opened* with a worker that knows *verbs*, all of them unless given; closed at the end."""
    with closing(opened):
        agent = embed(opened) if with_agent else None
        assert agent is not None or not with_agent
        engine = Engine.start(opened, verbs)
        yield opened
        engine.stop()
        if agent is not None:
            agent.stop()
