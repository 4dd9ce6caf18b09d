"""``incident-console reduce``."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.credentials import credential, headers_of, text_of
from app.cli.reduce_run import Chosen, run
from app.clients.commands import words_of
from app.clients.disposable import Ways
from app.clients.reduced_files import ReducedFiles
from app.clients.reduction import Budget
from app.clients.target import TargetAddress
from app.domain.replay.agreed import check as check_options
from app.domain.replay.limits import Limits
from app.domain.replay.options import DEFAULT_PARALLEL, Allowed, Options

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Source = Annotated[
    Path,
    typer.Argument(metavar="PATH", help="A dump, JSON lines, or one payload of a request."),
]
BaseUrl = Annotated[str, typer.Option(help="A target that may be killed again and again.")]
Check = Annotated[
    str,
    typer.Option(
        metavar="CMD", help="Run after each try: 0 it is well, 125 cannot tell, else it failed."
    ),
]
Restart = Annotated[
    str | None,
    typer.Option(
        metavar="CMD", help="Starts the target anew; may be the server itself. No shell is used."
    ),
]
BudgetSeconds = Annotated[float, typer.Option(min=1, help="Then it ends with the smallest so far.")]
MostProbes = Annotated[int, typer.Option(min=1, help="Sets that are tried at most.")]
Trials = Annotated[
    int, typer.Option(min=1, max=20, help="How often a set has to pass, if it fails now and then.")
]
Select = Annotated[
    str | None,
    typer.Option(metavar="EXPR", help="0:3,7 or rid=…, state=unfinished, suspect."),
]
Parallel = Annotated[int, typer.Option(min=1, help="In flight at most; 1 sends one by one.")]
Speed = Annotated[
    float | None,
    typer.Option(help="Send at the recorded times, so many times as fast; else at once."),
]
MediaAddresses = Annotated[
    bool, typer.Option("--allow-media-addresses", help="Let the target fetch images by address.")
]
CustomCode = Annotated[
    bool, typer.Option("--allow-custom-code", help="Let the target run the code in a request.")
]
ReadyPath = Annotated[str, typer.Option(help="Answers 200 once the target takes requests.")]
ReadySeconds = Annotated[float, typer.Option(min=1, help="From a restart until then.")]
CheckSeconds = Annotated[float, typer.Option(min=0.1, help="For the check; then it cannot tell.")]
RequestSeconds = Annotated[float, typer.Option(min=0.1, help="For one request to its end.")]
SettleSeconds = Annotated[float, typer.Option(min=0, help="Waited before the check.")]
TokenEnv = Annotated[str | None, typer.Option(help="Environment variable with the user API key.")]
TokenFile = Annotated[Path | None, typer.Option(help="File with the user API key.")]
HeaderFile = Annotated[
    Path | None, typer.Option(help="File with further headers, one 'Name: value' a line.")
]
CaFile = Annotated[Path | None, typer.Option(help="PEM file of the certificates to trust instead.")]
Out = Annotated[
    Path, typer.Option(metavar="FILE", help="The smallest set; its steps lie beside it.")
]
Yes = Annotated[bool, typer.Option("--yes", help="The target serves nobody and may be killed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Everything as one JSON document.")]


@app.command("reduce")
def reduce(  # noqa: PLR0913  (each is a flag of its own)
    path: Source,
    *,
    base_url: BaseUrl,
    check: Check,
    restart: Restart = None,
    budget_seconds: BudgetSeconds = 3600.0,
    max_probes: MostProbes = 300,
    trials: Trials = 1,
    select: Select = None,
    parallel: Parallel = DEFAULT_PARALLEL,
    speed: Speed = None,
    media_addresses: MediaAddresses = False,
    custom_code: CustomCode = False,
    ready_path: ReadyPath = "/health",
    ready_seconds: ReadySeconds = 600.0,
    check_seconds: CheckSeconds = 60.0,
    request_seconds: RequestSeconds = 120.0,
    settle_seconds: SettleSeconds = 1.0,
    token_env: TokenEnv = None,
    token_file: TokenFile = None,
    header_file: HeaderFile = None,
    ca_file: CaFile = None,
    out: Out = Path("smallest.jsonl"),
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Find the fewest requests, then the shortest prompts and answers, that still fail.

    The target is killed by design, again and again: it must serve nobody. Each set that is tried
    is sent to it in the recorded order; then the check command tells whether it failed. Each step
    is written beside FILE at once: the same command goes on from there after it was stopped or
    killed. Exit status 0 with a smallest set, also where the budget ended before nothing was left
    to try; 1 where the requests do not bring the fault about.
    """
    options = _options(speed, parallel, media_addresses=media_addresses, custom_code=custom_code)
    check_options(options, trials)
    words = words_of(check, "--check"), words_of(restart, "--restart") if restart else None
    limits = Limits(request_seconds=request_seconds, total_seconds=budget_seconds)
    ways = Ways(*words, ready_path, ready_seconds, check_seconds, settle_seconds, limits)
    address = _address(base_url, token_env, token_file, header_file, ca_file)
    budget = Budget(budget_seconds, max_probes, trials)
    chosen = Chosen(path, select, options, ways, budget, yes=yes, as_json=as_json)
    run(chosen, address, ReducedFiles(out))


def _options(
    speed: float | None, parallel: int, *, media_addresses: bool, custom_code: bool
) -> Options:
    told: dict[Allowed, bool] = {"media-addresses": media_addresses, "custom-code": custom_code}
    return Options(
        mode="flat-out" if speed is None else "open",
        speed=1.0 if speed is None else speed,
        parallel=parallel,
        allow=frozenset(name for name, allowed in told.items() if allowed),
    )


def _address(
    base_url: str,
    token_env: str | None,
    token_file: Path | None,
    header_file: Path | None,
    ca_file: Path | None,
) -> TargetAddress:
    return TargetAddress(
        base_url,
        token=credential(token_env, token_file),
        headers=headers_of(header_file),
        ca_pem=text_of(ca_file) if ca_file else None,
    )
