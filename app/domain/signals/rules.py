"""All rules, and what they find in one bundle."""

from dataclasses import dataclass

from app.domain.claims import Claim, Level, Status
from app.domain.observed import Observed, apart
from app.domain.signals import exposure, identity, latency, liveness, load
from app.domain.signals.ruling import NotChecked, Quiet, Rule

_OF_ONE_SERVER: tuple[Rule, ...] = (
    *liveness.RULES,
    *load.RULES,
    *latency.RULES,
    *exposure.RULES,
)
RULES: tuple[Rule, ...] = (*identity.RULES, *_OF_ONE_SERVER)
_BY_LEVEL = (Level.BAD, Level.WARN, Level.NOTE)
_BY_STATUS = (Status.ESTABLISHED, Status.SUPPORTED, Status.HYPOTHESIS, Status.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Signals:
    """What the rules found, most severe and best proven first."""

    claims: tuple[Claim, ...]
    quiet: tuple[Quiet, ...]
    not_checked: tuple[NotChecked, ...]
    one_server: bool  # whether two looks of the bundle may be compared


def signals(seen: Observed) -> Signals:
    """The findings of all rules on one bundle.

    Where the answers are of several servers, no rule compares two of them.
    """
    rulings = [rule(seen) for rule in identity.RULES]
    mixed = any(isinstance(one, Claim) and one.id == "not-one-server" for one in rulings)
    rulings += [rule(apart(seen) if mixed else seen) for rule in _OF_ONE_SERVER]
    claims = [one for one in rulings if isinstance(one, Claim)]
    claims.sort(key=lambda one: (_BY_LEVEL.index(one.level), _BY_STATUS.index(one.status)))
    return Signals(
        claims=tuple(claims),
        quiet=tuple(one for one in rulings if isinstance(one, Quiet)),
        not_checked=tuple(one for one in rulings if isinstance(one, NotChecked)),
        one_server=not mixed,
    )
