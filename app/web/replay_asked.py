"""What the API and the form ask of a replay in the same words, and what is made of it."""

from pydantic import BaseModel, Field

from app.domain.replay.agreed import (
    LONGEST_REQUEST_SECONDS,
    MOST_NEW_TOKENS,
    MOST_PARALLEL,
    MOST_TRIALS,
)
from app.domain.replay.options import (
    DEFAULT_MOST_NEW_TOKENS,
    DEFAULT_PARALLEL,
    Allowed,
    Mode,
    Options,
    Window,
)
from app.domain.replay.symptoms import Symptom
from app.store.replays import NewReplay, Reference


class AskedReplay(BaseModel):
    """How requests are to be sent, and what is looked for. ``agreed.check`` bounds the rest."""

    symptom: Symptom | None = None
    reference: Reference = "faulty"
    mode: Mode = "open"
    speed: float = 1.0
    parallel: int = Field(default=DEFAULT_PARALLEL, ge=1, le=MOST_PARALLEL)
    sample: float = 1.0
    trials: int = Field(default=1, ge=1, le=MOST_TRIALS)
    most_new_tokens: int = Field(default=DEFAULT_MOST_NEW_TOKENS, ge=1, le=MOST_NEW_TOKENS)
    ignore_eos: bool = False
    same_setup: bool = False
    allow: list[Allowed] = []
    request_seconds: float = Field(default=600.0, ge=1, le=LONGEST_REQUEST_SECONDS)

    def options_in(
        self, window: Window, *, cut_gaps_to_seconds: float | None, seed: int = 0
    ) -> Options:
        """How they are sent, of *window* of the recording."""
        return Options(
            mode=self.mode,
            speed=self.speed,
            parallel=self.parallel,
            window=window,
            sample=self.sample,
            seed=seed,
            cut_gaps_to_seconds=cut_gaps_to_seconds,
            most_new_tokens=self.most_new_tokens,
            ignore_eos=self.ignore_eos,
            same_setup=self.same_setup,
            allow=frozenset(self.allow),
        )

    def new_replay(self, incident_id: int, target_id: int, options: Options) -> NewReplay:
        """What to ask the store for; of which requests, the caller adds."""
        return NewReplay(
            incident_id=incident_id,
            target_id=target_id,
            options=options,
            trials=self.trials,
            symptom=self.symptom,
            request_seconds=self.request_seconds,
            reference=self.reference,
        )
