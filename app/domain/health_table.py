"""The verdict on a server as a truth table: the first row that holds gives it.

The words are those of the public interface. ``wedged`` is said only with work present and
nothing moved for a minute; one shorter window is ``unknown`` and says so. /ready and /ping
repeat the last state that somebody's /health call left: they stay green over a dead scheduler.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

WEDGED_SECONDS = 60.0


class Verdict(StrEnum):
    """What a server is, as far as the evidence goes."""

    HEALTHY = "healthy"  # answers, and work moves or there is none
    BUSY = "busy"  # work moves, and requests wait
    WEDGED = "wedged"  # work is there, and nothing moved for a minute
    FALSE_GREEN = "false green"  # a health endpoint is green over a server that does not serve
    FALSE_RED = "false red"  # a health endpoint is red over a server that works
    STARTING = "starting"
    GONE = "gone"  # nothing listens there
    UNKNOWN = "unknown"


class Reach(StrEnum):
    """How far asking got, all endpoints together."""

    ANSWERS = "answers"  # at least one endpoint answered with contents or a health status
    CLOSED = "closed"  # only 401 and 403
    PROXY = "proxy"  # only a proxy answered
    REFUSED = "refused"  # nothing listens
    SILENT = "silent"  # only time-outs
    BROKEN = "broken"  # only resets, TLS or name errors
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """What the table looks at. None is not known."""

    reach: Reach = Reach.ANSWERS
    went_away: bool = False  # answered at first, refused at the end
    ready: bool | None = None  # /ready (or /ping)
    health_green: bool | None = None  # any answer of /health, however shallow
    generates: bool | None = None  # a probe produced a token; False after its full time
    refuses_at_once: bool = False  # 503 in less than two seconds: starting or shutting down
    served_before: bool | None = None  # whether a request was ever finished
    work: bool | None = None  # requests run or wait
    moved: bool | None = None  # counters moved, or a fresh snapshot shows running requests
    fresh: bool | None = None  # the scheduler answered or published just now, on every rank
    quiet_seconds: float | None = None  # nothing of the whole server moved for so long
    waiting: int | None = None
    stuck_ranks: tuple[int, ...] = ()  # with work, unmoved for a minute
    late_ranks: tuple[int, ...] = ()  # behind the others, less than a minute
    ranks: int = 0
    scheduler_silent: bool | None = None  # /server_info timed out where /model_info answered
    several_servers: bool = False  # the answers cannot be of one server
    blocked: bool = False  # /v1/loads timed out, and so did all that came after it

    @property
    def green(self) -> bool:
        """Whether a load balancer would see a green light somewhere."""
        return bool(self.ready or self.health_green or self.generates)

    @property
    def red(self) -> bool:
        return self.ready is False or self.health_green is False or self.generates is False

    @property
    def quiet_for_a_minute(self) -> bool:
        return self.quiet_seconds is not None and self.quiet_seconds >= WEDGED_SECONDS


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``name`` identifies it in a summary and in tests."""

    name: str
    verdict: Verdict
    when: Callable[[HealthFacts], bool]
    says: Callable[[HealthFacts], str] | str


def _for(facts: HealthFacts) -> str:
    return "some time" if facts.quiet_seconds is None else f"{facts.quiet_seconds:.0f} s"


def _ranks(numbers: tuple[int, ...], all_ranks: int) -> str:
    names = ", ".join(f"DP{number}" for number in numbers[:8])
    return f"{names} of {all_ranks} ranks" if all_ranks > 1 else names


def _partly(facts: HealthFacts) -> str:
    return (
        f"{_ranks(facts.stuck_ranks, facts.ranks)} did not move for a minute with work present; "
        "a health answer is given by the ranks that still work."
    )


TABLE: tuple[Row, ...] = (
    # How far asking got.
    Row("nothing-asked", Verdict.UNKNOWN, lambda f: f.reach is Reach.NOT_ASKED,
        "No endpoint was asked."),
    Row("refused", Verdict.GONE, lambda f: f.reach is Reach.REFUSED,
        "Every connection was refused: nothing listens there. SGLang opens its port only when the "
        "model is loaded, so it may also still be loading."),
    Row("went-away", Verdict.GONE, lambda f: f.went_away,
        "It answered at first and refused connections at the end: the server went away while it "
        "was asked."),
    Row("proxy", Verdict.UNKNOWN, lambda f: f.reach is Reach.PROXY,
        "Only a proxy answered; the server itself was not reached."),
    Row("broken", Verdict.UNKNOWN, lambda f: f.reach is Reach.BROKEN,
        "No endpoint could be asked: connections broke. Network, name, TLS or a dying server."),
    Row("silent", Verdict.UNKNOWN, lambda f: f.reach is Reach.SILENT,
        "Connections are accepted and nothing answers. A frozen scheduler does this to the Rust "
        "ingress, and to the Python one while it holds the lock of the load snapshot."),
    # A minute without movement.
    Row("wedged", Verdict.WEDGED,
        lambda f: f.work is True and not f.moved and f.quiet_for_a_minute,
        lambda f: f"Requests are in the server and nothing moved for {_for(f)}."),
    Row("partly-wedged-green", Verdict.FALSE_GREEN, lambda f: bool(f.stuck_ranks) and f.green,
        _partly),
    Row("partly-wedged", Verdict.WEDGED, lambda f: bool(f.stuck_ranks),
        lambda f: f"{_ranks(f.stuck_ranks, f.ranks)}: with work, unmoved for a minute."),
    Row("silent-scheduler-green", Verdict.FALSE_GREEN,
        lambda f: f.quiet_for_a_minute and not f.moved and f.green and not f.generates,
        lambda f: f"The scheduler published nothing for {_for(f)}, and an idle one publishes all "
        "the time; a green health endpoint only repeats an older state."),
    Row("silent-scheduler", Verdict.UNKNOWN,
        lambda f: f.quiet_for_a_minute and not f.moved and not f.generates,
        lambda f: f"The scheduler published nothing for {_for(f)}; whether it had work is not "
        "known. Stacks decide."),
    # Red over work that moves.
    Row("busy-not-stuck", Verdict.FALSE_RED,
        lambda f: f.moved is True and f.red and not f.late_ranks,
        "A health endpoint is red while the work moves: busy, not stuck. A long prefill gives no "
        "output for longer than the health check waits; a pause or a shutdown looks alike."),
    Row("came-back", Verdict.BUSY,
        lambda f: f.generates is True and not f.moved and not f.red
        and f.ranks <= 1  # of several ranks any one may have given the token
        and not f.late_ranks and not f.several_servers
        and (f.scheduler_silent is True or f.fresh is False),
        "A scheduler was silent while it was asked, and the probe after that produced a token: "
        "slow, not stuck. A first forward pass, a compile or a long prefill does this."),
    Row("red-but-generates", Verdict.FALSE_RED, lambda f: f.generates is True and f.red,
        "A health endpoint is red, yet a probe produced a token."),
    # Not serving yet.
    Row("starting", Verdict.STARTING,
        lambda f: f.refuses_at_once and not f.served_before and not f.work,
        "It refuses at once and has served nothing so far: still starting."),
    Row("shutting-down", Verdict.UNKNOWN, lambda f: f.refuses_at_once and not f.moved,
        "It refuses at once although it has served before: shutting down, draining or paused."),
    # Less than a minute, or too few facts.
    Row("blocked", Verdict.UNKNOWN, lambda f: f.blocked,
        "/v1/loads got no answer and neither did what was asked after it: a scheduler frozen while "
        "it holds the lock of the load snapshot blocks the whole server. Stacks decide."),
    Row("short-window", Verdict.UNKNOWN,
        lambda f: f.work is True and f.moved is False and f.quiet_seconds is not None
        and not f.generates,
        lambda f: f"No progress for {_for(f)}: long prefill, compile, GC or hang; stacks decide."),
    Row("stale", Verdict.UNKNOWN,
        lambda f: f.fresh is False and not f.moved and not f.generates,
        lambda f: f"No progress for {_for(f)}, by the age of the newest load snapshot: long "
        "prefill, compile, GC or hang; stacks decide."),
    Row("late-ranks", Verdict.UNKNOWN, lambda f: bool(f.late_ranks),
        lambda f: f"{_ranks(f.late_ranks, f.ranks)} did not move lately while others did: "
        "long prefill, compile, GC or hang; stacks decide."),
    Row("green-cannot-generate", Verdict.FALSE_GREEN,
        lambda f: f.generates is False and bool(f.ready or f.health_green),
        "A health endpoint is green, but no token came back within the health check's own time."),
    Row("cannot-generate", Verdict.UNKNOWN, lambda f: f.generates is False,
        "No token came back within the health check's own time, and nothing tells whether work "
        "moves: busy or stuck. Stacks decide."),
    Row("scheduler-silent", Verdict.UNKNOWN, lambda f: f.scheduler_silent is True,
        "The HTTP side answers, but /server_info, which waits for every scheduler, does not: at "
        "least one is silent or very busy. Stacks decide."),
    Row("no-progress", Verdict.UNKNOWN,
        lambda f: f.work is True and f.moved is False and not f.generates,
        "No progress between two looks: long prefill, compile, GC or hang; stacks decide."),
    # Serving.
    Row("several-servers", Verdict.UNKNOWN, lambda f: f.several_servers,
        "Several servers stand behind this address and each answer is of one of them: that one "
        "serves says nothing of the others."),
    Row("busy", Verdict.BUSY, lambda f: f.moved is True and bool(f.waiting),
        lambda f: f"The work moves and {f.waiting} requests wait."),
    Row("moves", Verdict.HEALTHY, lambda f: f.moved is True, "The work moves."),
    Row("generates", Verdict.HEALTHY, lambda f: f.generates is True and not f.work,
        "A probe produced a token, and nothing speaks against it."),
    Row("generates-with-work", Verdict.BUSY, lambda f: f.generates is True and bool(f.waiting),
        lambda f: f"A probe was answered while {f.waiting} requests wait."),
    Row("answers-probe", Verdict.HEALTHY, lambda f: f.generates is True,
        "A probe was answered while requests run."),
    Row("idle", Verdict.HEALTHY,
        lambda f: f.work is False and f.fresh is True and not f.red,
        "Nothing to do, and every scheduler answers. Whether it generates was not asked."),
    # Not decided.
    Row("closed", Verdict.UNKNOWN, lambda f: f.reach is Reach.CLOSED,
        "It answers, but the key is missing or wrong: not down, and not known to be well."),
    Row("undecided", Verdict.UNKNOWN, lambda _: True,
        "Too little was answered to tell: a green /ready says nothing of the scheduler."),
)  # fmt: skip


def decide(facts: HealthFacts) -> Row:
    """The first row of the table that holds for *facts*; the last one always does."""
    return next(row for row in TABLE if row.when(facts))
