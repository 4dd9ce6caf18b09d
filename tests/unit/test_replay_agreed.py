"""What is agreed to for a replay is held to its bounds and comes back as it was kept."""

from dataclasses import replace

import orjson
import pytest

from app.domain.replay import agreed
from app.domain.replay.options import Options, Window
from app.errors import Rejected

EVERYTHING = Options(
    mode="closed",
    speed=2.0,
    parallel=7,
    window=Window(1.0, 9.0),
    sample=0.5,
    seed=3,
    cut_gaps_to_seconds=5.0,
    most_new_tokens=16,
    ignore_eos=True,
    same_setup=True,
    allow=frozenset(("custom-code", "media-addresses")),
)


@pytest.mark.parametrize(
    "options", [pytest.param(Options(), id="usual"), pytest.param(EVERYTHING, id="everything")]
)
def test_options_survive_being_kept(options: Options) -> None:
    assert agreed.read(orjson.loads(orjson.dumps(agreed.as_json(options)))) == options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(replace(Options(), speed=0.0), "speed is 0", id="speed"),
        pytest.param(replace(Options(), speed=float("nan")), "speed is nan", id="no-number"),
        pytest.param(replace(Options(), parallel=0), "parallel is 0", id="parallel"),
        pytest.param(replace(Options(), sample=0.0), "share above 0", id="sample"),
        pytest.param(replace(Options(), most_new_tokens=10**9), "most_new_tokens", id="tokens"),
        pytest.param(replace(Options(), window=Window(5.0, 5.0)), "ends before", id="window"),
        pytest.param(replace(Options(), window=Window(-1.0)), "from_seconds is -1", id="early"),
        pytest.param(replace(Options(), cut_gaps_to_seconds=-1.0), "cut_gaps", id="gaps"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_name(options: Options, says: str) -> None:
    with pytest.raises(Rejected, match=says):
        agreed.check(options, 1)


def test_trials_and_deadlines_have_their_bounds() -> None:
    agreed.check(Options(), agreed.MOST_TRIALS)
    with pytest.raises(Rejected, match="trials"):
        agreed.check(Options(), agreed.MOST_TRIALS + 1)
    agreed.check_deadline(600.0)
    with pytest.raises(Rejected, match="request_seconds"):
        agreed.check_deadline(0.5)
