from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson
import pytest

from app.domain import endpoints as e
from app.domain.capture import Capture, Outcome
from app.domain.ingress import explained, ingress, version
from app.domain.meaning import meaning
from app.domain.outcomes import outcome_of
from app.domain.phases import Phase, Plan, next_phase

STARLETTE = b'{"detail":"Not Found"}'


def answer(name: str, value: object = None, *, status: int = 200, seconds: float = 0.01) -> Capture:
    body = value if isinstance(value, bytes) else orjson.dumps({} if value is None else value)
    outcome, detail = outcome_of(name, status, body)
    return Capture(
        name, e.BY_NAME[name].path, outcome, status, seconds=seconds, body=body, detail=detail
    )


def silent(name: str, outcome: Outcome = Outcome.TIMEOUT) -> Capture:
    return Capture(name, e.BY_NAME[name].path, outcome, seconds=5.0)


def by_name(*captures: Capture) -> dict[str, Capture]:
    return {capture.name: capture for capture in captures}


@pytest.mark.parametrize(
    ("name", "status", "body", "outcome"),
    [
        pytest.param("ready", 503, b"", Outcome.ANSWERED, id="503-is-an-answer"),
        pytest.param("health", 200, b"", Outcome.ANSWERED, id="empty-health-is-fine"),
        pytest.param("server_info", 404, STARLETTE, Outcome.NOT_OFFERED, id="404"),
        pytest.param("server_info", 401, b"", Outcome.NO_ACCESS, id="401"),
        pytest.param("hicache", 403, b"", Outcome.NO_ACCESS, id="403"),
        pytest.param("hicache", 400, b"requires admin API key", Outcome.NO_ACCESS, id="hicache"),
        pytest.param("loads_all_1", 400, b"admin", Outcome.ANSWERED, id="400-elsewhere"),
        pytest.param("model_info", 302, b"", Outcome.REJECTED, id="redirect"),
        pytest.param("model_info", 200, b"<html>", Outcome.REJECTED, id="html"),
        pytest.param("model_info", 200, b"[1,2]", Outcome.REJECTED, id="a-list"),
        pytest.param("model_info", 200, b"null", Outcome.REJECTED, id="null"),
        pytest.param("model_info", 200, b"", Outcome.REJECTED, id="empty-json"),
        pytest.param("get_load", 200, b"[]", Outcome.ANSWERED, id="list-where-one-may-be"),
        pytest.param("server_info", 502, b"<html>", Outcome.ANSWERED, id="gateway"),
    ],
)
def test_each_answer_has_its_outcome(name: str, status: int, body: bytes, outcome: Outcome) -> None:
    assert outcome_of(name, status, body)[0] is outcome


@pytest.mark.parametrize(
    ("captures", "serves"),
    [
        pytest.param([answer("ready", b"", status=200)], "python", id="ready-200"),
        pytest.param([answer("ready", b"", status=503)], "python", id="ready-503"),
        pytest.param([answer("ready", b"", status=404)], "rust", id="empty-404"),
        pytest.param([answer("ready", STARLETTE, status=404)], "python", id="starlette-404"),
        pytest.param([answer("ready", b"<html>", status=404)], "unknown", id="gateway-404"),
        pytest.param([answer("ready", b"", status=401)], "unknown", id="401"),
        pytest.param(
            [replace(answer("ready", b"", status=401), headers={"server": "uvicorn"})],
            "python",
            id="uvicorn",
        ),
        pytest.param([silent("ready")], "unknown", id="silence"),
        pytest.param(
            [answer("ready", b"", status=404), answer("server_info", {"frontend": "python"})],
            "python",
            id="frontend-confirms",
        ),
        pytest.param([answer("server_info", {"frontend": "rust"})], "rust", id="frontend-rust"),
        pytest.param([answer("server_info", {"frontend": ["x"]})], "unknown", id="odd-frontend"),
        pytest.param([], "unknown", id="nothing"),
    ],
)
def test_the_ingress_is_told_by_cheap_answers_and_confirmed(
    captures: list[Capture], serves: str
) -> None:
    assert ingress(by_name(*captures)) == serves


@pytest.mark.parametrize(
    ("name", "told", "unexpected"),
    [
        pytest.param("ready", {"version": "0.5.23", "frontend": "python"}, True, id="new-python"),
        pytest.param("ready", {"version": "0.5.17", "frontend": "python"}, False, id="old-python"),
        pytest.param("ready", {"version": "0.5.20", "frontend": "python"}, False, id="not-sampled"),
        pytest.param("ready", {"version": "0.5.23", "frontend": "rust"}, False, id="rust"),
        pytest.param("loads_all_1", {"version": "0.5.23", "frontend": "rust"}, True, id="rust-new"),
        pytest.param(
            "loads_all_1", {"version": "0.5.19", "frontend": "rust"}, False, id="rust-old"
        ),
        pytest.param("model_info", {"version": "0.5.5"}, False, id="old-name"),
        pytest.param("model_info", {"version": "0.5.9.post1"}, True, id="post-release"),
        pytest.param("get_load", {"version": "0.5.23"}, False, id="gone"),
        pytest.param("get_load", {"version": "0.5.2"}, True, id="should-be-there"),
        pytest.param("metrics_1", {"version": "0.5.23"}, False, id="metrics-off"),
        pytest.param("health", {"version": "0.5.23"}, True, id="always-there"),
        pytest.param("ready", {}, False, id="version-unknown"),
    ],
)
def test_a_404_that_is_not_the_ingress_own_is_unexpected(
    name: str, told: dict[str, str], unexpected: bool
) -> None:
    captures = by_name(answer("server_info", told), answer(name, STARLETTE, status=404))
    [detail] = [one.detail for one in explained(captures) if one.name == name]
    assert ("unexpected" in detail) is unexpected
    assert detail


def test_the_version_is_read_where_it_can_be_compared() -> None:
    assert version(by_name(answer("server_info", {"version": "0.5.9.post2"}))) == (0, 5, 9)
    assert version(by_name(answer("loads_all_1", {"version": "0.5.13"}))) == (0, 5, 13)
    assert version(by_name(answer("server_info", {"version": "main"}))) is None
    assert version({}) is None


@pytest.mark.parametrize("name", [endpoint.name for endpoint in e.ENDPOINTS])
@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_of_every_endpoint_says_something(name: str, outcome: Outcome) -> None:
    for status in (200, 503, 500, 502):
        says = meaning(Capture(name, e.BY_NAME[name].path, outcome, status))
        assert says.endswith(".")
        assert "None" not in says


def test_names_and_files_are_unique() -> None:
    assert len({endpoint.name for endpoint in e.ENDPOINTS}) == len(e.ENDPOINTS)
    assert e.file_name("loads_all_1") == "loads_all_1.json"
    assert e.file_name("metrics_2") == "metrics_2.txt"
    assert e.file_name("something_new") == "something_new.txt"


def asked(phase: Phase | None) -> list[str]:
    return [ask.endpoint.name for ask in phase.asks] if phase else []


def story(
    answers: Mapping[str, Capture], plan: Plan, verdict: str = "unknown"
) -> tuple[list[list[str]], dict[str, Capture]]:
    """The phases of a collection in which each endpoint gives the answer in *answers*."""

    def decide(_: Sequence[Capture]) -> str:
        return verdict

    phases: list[list[str]] = []
    done: dict[str, Capture] = {}
    while phase := next_phase(done, plan, decide):
        phases.append(asked(phase))
        for ask in phase.asks:
            done[ask.endpoint.name] = answers.get(ask.endpoint.name) or answer(ask.endpoint.name)
        done |= {skipped.name: skipped for skipped in phase.skipped}
        assert len(phases) < 20
    return phases, done


CHEAP = ["ready", "model_info", "metrics_1", "hicache"]


def test_a_healthy_server_is_asked_in_order_and_not_probed() -> None:
    phases, done = story({}, Plan(), "healthy")
    assert phases == [CHEAP, ["server_info"], ["loads_all_1"], ["metrics_2"], ["loads_all_2"], []]
    assert done["health_generate"].outcome is Outcome.NOT_ASKED
    assert "healthy" in done["health_generate"].detail


def test_an_undecided_server_is_probed_once_and_last() -> None:
    phases, done = story({}, Plan(), "unknown")
    assert phases[-2:] == [["health_generate"], []]
    assert done["health"].outcome is Outcome.NOT_ASKED


def test_what_timed_out_is_not_asked_again_under_any_name() -> None:
    late = by_name(*map(silent, ("metrics_1", "server_info", "loads_all_1", "model_info")))
    phases, _ = story(late, Plan(probe="never"))
    assert phases == [CHEAP, ["server_info"], ["loads_all_1"], []]


def test_loads_are_asked_again_only_if_they_were_quick() -> None:
    slow = by_name(answer("loads_all_1", seconds=2.5))
    phases, done = story(slow, Plan(probe="never"))
    assert ["loads_all_2"] not in phases
    assert done["loads_all_2"].outcome is Outcome.NOT_ASKED


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(answer("loads_all_1", b"oops", status=500), ["loads_core_1"], id="500"),
        pytest.param(answer("loads_all_1", b"[1]"), ["loads_core_1"], id="not-an-object"),
        pytest.param(answer("loads_all_1", b"", status=404), ["get_load"], id="404"),
        pytest.param(answer("loads_all_1", b"", status=401), None, id="401"),
        pytest.param(silent("loads_all_1", Outcome.REFUSED), None, id="refused"),
    ],
)
def test_the_second_form_of_loads_only_where_it_can_help(
    first: Capture, second: list[str] | None
) -> None:
    phases, _ = story(by_name(first), Plan(probe="never"))
    after = phases[phases.index(["loads_all_1"]) + 1]
    assert after == (second or ["metrics_2"])


def test_an_old_server_is_asked_under_its_old_names() -> None:
    missing = ("ready", "model_info", "server_info", "loads_all_1")
    old = by_name(*(answer(name, STARLETTE, status=404) for name in missing))
    old |= by_name(answer("get_server_info", {"version": "0.4.9"}))
    phases, done = story(old, Plan(), "healthy")
    assert phases == [
        CHEAP,
        ["get_model_info"],
        ["server_info"],
        ["get_server_info"],
        ["loads_all_1"],
        ["get_load"],
        ["metrics_2"],
        ["health"],
    ]
    assert done["health_generate"].outcome is Outcome.NOT_ASKED


def test_before_0_5_2_health_and_generate_differ_and_both_are_asked() -> None:
    phases, _ = story(by_name(answer("server_info", {"version": "0.4.9"})), Plan(probe="always"))
    assert phases[-1] == ["health", "health_generate"]


def test_an_engine_without_generate_is_probed_at_its_health() -> None:
    other = by_name(answer("health_generate", STARLETTE, status=404))
    phases, _ = story(other, Plan(probe="always"))
    assert phases[-2:] == [["health_generate"], ["health"]]


@pytest.mark.parametrize("verdict", ["healthy", "busy", "wedged", "gone"])
def test_a_decided_server_is_not_probed(verdict: str) -> None:
    _, done = story({}, Plan(), verdict)
    assert done["health_generate"].outcome is Outcome.NOT_ASKED


def test_a_server_that_says_nothing_at_all_is_not_probed() -> None:
    nothing = by_name(*map(silent, (*CHEAP, "server_info", "loads_all_1")))
    phases, done = story(nothing, Plan())
    assert phases[-1] == []
    assert done["health_generate"].detail.startswith("Nothing answered")


@pytest.mark.parametrize(
    ("told", "seconds"), [(None, 22.0), ("5", 22.0), ("60", 62.0), ("9999", 122.0), ("x", 22.0)]
)
def test_a_probe_waits_longer_than_the_server_does(told: str | None, seconds: float) -> None:
    states = [{"env_vars": {"SGLANG_HEALTH_CHECK_TIMEOUT": told}}]
    done = story(by_name(answer("server_info", {"internal_states": states})), Plan("never"))[1]
    done = {name: one for name, one in done.items() if not name.startswith("health")}
    phase = next_phase(done, Plan(), lambda _: "unknown")
    assert phase is not None
    assert [(ask.timeout_seconds, ask.needs_seconds) for ask in phase.asks] == [(seconds, seconds)]


def test_a_collection_that_was_cut_off_goes_on_where_it_was() -> None:
    _, whole = story({}, Plan(), "healthy")
    for cut in range(len(whole)):
        done = dict(list(whole.items())[:cut])
        phase = next_phase(done, Plan(), lambda _: "healthy")
        assert phase is not None
        assert not set(asked(phase)) & set(done)


@pytest.mark.parametrize(
    ("seconds", "proves"),
    [
        pytest.param(1.01, "sent something", id="it waited"),
        pytest.param(0.003, "a flag or a constant", id="at once"),
        pytest.param(None, "before it was a constant", id="time not kept"),
    ],
)
def test_a_green_health_answer_says_no_more_than_its_time_allows(
    seconds: float | None, proves: str
) -> None:
    green = Capture("health", "/health", Outcome.ANSWERED, status=200, seconds=seconds)
    assert proves in meaning(green)
