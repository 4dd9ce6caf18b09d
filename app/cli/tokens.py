"""``incident-console token``: keys for programs."""

from datetime import UTC, datetime
from typing import Annotated

import orjson
import typer

from app.cli.console_data import DataDir, migrated, settings_of
from app.cli.users import AsJson, Role
from app.store import api_tokens
from app.store.audit import CLI
from app.store.database import reading, writing

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="Keys for programs."
)


@app.command()
def create(
    *,
    name: Annotated[str, typer.Option(help="Of the program that will use it.")],
    role: Annotated[Role, typer.Option(help="reader looks, operator acts, admin registers.")],
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Make a token and print it, this once."""
    with migrated(settings_of(data_dir)) as engine, writing(engine) as session:
        row, token = api_tokens.create_token(
            session, name, role=role.value, actor=CLI, at=datetime.now(UTC)
        )
        told = {"id": row.id, "name": row.name, "role": row.role, "token": token}
    typer.echo(orjson.dumps(told).decode() if as_json else token)


@app.command("list")
def list_tokens(*, data_dir: DataDir = None) -> None:
    """Number, name, role and last use of every token that works."""
    with migrated(settings_of(data_dir)) as engine, reading(engine) as session:
        for row in api_tokens.list_tokens(session):
            used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never"
            typer.echo(f"{row.id:<6} {row.name:<24} {row.role:<9} last used {used}")


@app.command()
def revoke(
    token_id: Annotated[int, typer.Argument(help="Its number, as `token list` tells it.")],
    *,
    data_dir: DataDir = None,
) -> None:
    """Make a token useless at once."""
    with migrated(settings_of(data_dir)) as engine, writing(engine) as session:
        api_tokens.revoke_token(session, token_id, actor=CLI, at=datetime.now(UTC))
    typer.echo(f"Revoked token {token_id}.")
