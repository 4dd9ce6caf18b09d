"""``incident-console replay``."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.credentials import credential, headers_of, text_of
from app.cli.replay_run import Chosen, run
from app.clients.target import TargetAddress
from app.domain.replay.agreed import check, check_deadline
from app.domain.replay.limits import Limits
from app.domain.replay.options import (
    DEFAULT_MOST_NEW_TOKENS,
    DEFAULT_PARALLEL,
    Allowed,
    Mode,
    Options,
    Window,
)
from app.domain.replay.selection import Selection, read_selection
from app.domain.replay.symptoms import Symptom
from app.errors import Rejected

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Source = Annotated[
    Path,
    typer.Argument(metavar="PATH", help="A dump, JSON lines, or one payload of a request."),
]
BaseUrl = Annotated[str, typer.Option(help="Where the target is, with its path prefix.")]
Parallel = Annotated[
    int, typer.Option(min=1, help="In flight at most, with --closed-loop and --flat-out.")
]
Speed = Annotated[float, typer.Option(help="2 sends twice as fast as it was recorded.")]
ClosedLoop = Annotated[
    bool, typer.Option("--closed-loop", help="Keep --parallel in flight instead of the times.")
]
FlatOut = Annotated[bool, typer.Option("--flat-out", help="As fast as --parallel allows.")]
IgnoreEos = Annotated[
    bool, typer.Option("--ignore-eos", help="Make each answer as long as the recorded one.")
]
SameSetup = Annotated[
    bool,
    typer.Option(
        "--same-setup", help="It was recorded on this model, topology and kind of accelerator."
    ),
]
Select = Annotated[
    str | None,
    typer.Option(metavar="EXPR", help="0:3,7 or rid=…, state=unfinished, suspect."),
]
Sample = Annotated[float, typer.Option(help="Share of the sessions and single requests to send.")]
Seed = Annotated[int, typer.Option(help="Which sample.")]
FromSeconds = Annotated[float, typer.Option(help="Leave out what arrived earlier.")]
UntilSeconds = Annotated[float | None, typer.Option(help="Leave out what arrived from here on.")]
CutGaps = Annotated[
    float | None,
    typer.Option("--cut-gaps-seconds", help="Shorten silences of over 300 s to so many."),
]
MostNewTokens = Annotated[int, typer.Option(min=1, help="Tokens that an answer may have at most.")]
MediaAddresses = Annotated[
    bool, typer.Option("--allow-media-addresses", help="Let the target fetch images by address.")
]
CustomCode = Annotated[
    bool, typer.Option("--allow-custom-code", help="Let the target run the code in a request.")
]
OfSymptom = Annotated[Symptom, typer.Option("--symptom", help="What is to come again.")]
Trials = Annotated[int, typer.Option(min=1, help="How often to send all of them.")]
RequestSeconds = Annotated[float, typer.Option(min=1, help="For one request to its end.")]
TotalSeconds = Annotated[float, typer.Option(min=1, help="For one trial; then it is stopped.")]
TokenEnv = Annotated[str | None, typer.Option(help="Environment variable with the user API key.")]
TokenFile = Annotated[Path | None, typer.Option(help="File with the user API key.")]
HeaderFile = Annotated[
    Path | None, typer.Option(help="File with further headers, one 'Name: value' a line.")
]
CaFile = Annotated[Path | None, typer.Option(help="PEM file of the certificates to trust instead.")]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE.jsonl", help="A new file: one line a request.")
]
Yes = Annotated[bool, typer.Option("--yes", help="The target serves nobody and may go down.")]
AsJson = Annotated[bool, typer.Option("--json", help="Everything as one JSON document.")]


@app.command("replay")
def replay(  # noqa: PLR0913  (each is a flag of its own)
    path: Source,
    *,
    base_url: BaseUrl,
    parallel: Parallel = DEFAULT_PARALLEL,
    speed: Speed = 1.0,
    closed_loop: ClosedLoop = False,
    flat_out: FlatOut = False,
    ignore_eos: IgnoreEos = False,
    select: Select = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    from_seconds: FromSeconds = 0.0,
    until_seconds: UntilSeconds = None,
    cut_gaps_seconds: CutGaps = None,
    most_new_tokens: MostNewTokens = DEFAULT_MOST_NEW_TOKENS,
    media_addresses: MediaAddresses = False,
    custom_code: CustomCode = False,
    symptom: OfSymptom = "crash",
    same_setup: SameSetup = False,
    trials: Trials = 1,
    request_seconds: RequestSeconds = 600.0,
    total_seconds: TotalSeconds = 4 * 3600.0,
    token_env: TokenEnv = None,
    token_file: TokenFile = None,
    header_file: HeaderFile = None,
    ca_file: CaFile = None,
    out: Out = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send the requests of a recording to a clean target, and say whether it happened again.

    The target may go down: that is what this is for. What is sent, and what is stripped of it, is
    said first, and nothing is sent before it is confirmed. A target that serves others gets
    nothing, whatever is confirmed. Ctrl-C breaks off what is in flight and tells what was
    measured. Exit status 0 once all was sent, whatever the verdict is.
    """
    options = Options(
        _mode(closed_loop=closed_loop, flat_out=flat_out), speed, parallel,
        Window(from_seconds, until_seconds), sample, seed, cut_gaps_seconds, most_new_tokens,
        ignore_eos, _allowed(media_addresses, custom_code), same_setup=same_setup)  # fmt: skip
    limits = Limits(request_seconds=request_seconds, total_seconds=total_seconds)
    selected = _checked(options, trials, limits, select)
    chosen = Chosen(options, selected, symptom, trials, limits, yes=yes, as_json=as_json)
    run(path, _address(base_url, token_env, token_file, header_file, ca_file), chosen, out)


def _checked(options: Options, trials: int, limits: Limits, select: str | None) -> Selection:
    """The selection, once all that was chosen makes sense; else the command is used wrongly."""
    try:
        check(options, trials)
        check_deadline(limits.request_seconds)
        return read_selection(select or "")
    except Rejected as error:
        raise typer.BadParameter(error.detail) from error


def _address(
    base_url: str,
    token_env: str | None,
    token_file: Path | None,
    header_file: Path | None,
    ca_file: Path | None,
) -> TargetAddress:
    token, headers = credential(token_env, token_file), headers_of(header_file)
    ca_pem = text_of(ca_file) if ca_file else None
    return TargetAddress(base_url, token=token, headers=headers, ca_pem=ca_pem)


def _mode(*, closed_loop: bool, flat_out: bool) -> Mode:
    if closed_loop and flat_out:
        raise typer.BadParameter("--closed-loop and --flat-out exclude each other.")
    return "closed" if closed_loop else "flat-out" if flat_out else "open"


def _allowed(*flags: bool) -> frozenset[Allowed]:
    """Addresses of media, then code."""
    names: tuple[Allowed, ...] = ("media-addresses", "custom-code")
    return frozenset(name for name, allowed in zip(names, flags, strict=True) if allowed)
