"""``incident-console user``: who may sign in. Passwords never stand in the arguments."""

import sys
from datetime import UTC, datetime
from enum import StrEnum
from secrets import token_urlsafe
from typing import Annotated

import orjson
import typer

from app.cli.console_data import DataDir, migrated, settings_of
from app.store import accounts, passwords
from app.store.audit import CLI
from app.store.database import reading, writing

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="Who may sign in."
)
GENERATED_BYTES = 16


class Role(StrEnum):
    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"


Name = Annotated[str, typer.Argument(help="Small letters, digits and . _ @ -")]
FromStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin.")
]
Generate = Annotated[
    bool, typer.Option("--generate", help="Make a password and print it, without asking.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON document.")]


@app.command()
def create(
    name: Name,
    *,
    role: Annotated[Role, typer.Option(help="reader looks, operator acts, admin registers.")] = (
        Role.READER
    ),
    password_stdin: FromStdin = False,
    generate: Generate = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Create a user. Without a terminal to ask on, a password is made and printed once."""
    settings = settings_of(data_dir)
    password, made = _password(from_stdin=password_stdin, generate=generate)
    password_hash = passwords.hashed(password)
    with migrated(settings) as engine, writing(engine) as session:
        accounts.create_user(
            session,
            name,
            role=role.value,
            password_hash=password_hash,
            actor=CLI,
            at=datetime.now(UTC),
        )
    _tell(f"Created {name}, {role.value}.", name, password if made else None, as_json=as_json)


@app.command("password")
def change_password(
    name: Name,
    *,
    password_stdin: FromStdin = False,
    generate: Generate = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give a user another password and end all the user's sessions."""
    settings = settings_of(data_dir)
    with migrated(settings) as engine:
        with reading(engine) as session:
            accounts.get_user(session, name)
        password, made = _password(from_stdin=password_stdin, generate=generate)
        password_hash = passwords.hashed(password)
        with writing(engine) as session:
            accounts.change_password(session, name, password_hash, actor=CLI, at=datetime.now(UTC))
    _tell(f"Changed the password of {name}.", name, password if made else None, as_json=as_json)


@app.command()
def disable(name: Name, *, data_dir: DataDir = None) -> None:
    """Shut a user out at once; what the user wrote stays."""
    with migrated(settings_of(data_dir)) as engine, writing(engine) as session:
        accounts.disable_user(session, name, actor=CLI, at=datetime.now(UTC))
    typer.echo(f"Disabled {name}.")


@app.command("list")
def list_users(*, data_dir: DataDir = None) -> None:
    """Name, role and state of every user."""
    with migrated(settings_of(data_dir)) as engine, reading(engine) as session:
        for user in accounts.list_users(session):
            state = "disabled" if user.disabled_at else "can sign in"
            typer.echo(f"{user.name:<24} {user.role:<9} {state}")


def _password(*, from_stdin: bool, generate: bool) -> tuple[str, bool]:
    """The password, and whether it was made here and must be shown."""
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n"), False
    if generate or not sys.stdin.isatty():
        return token_urlsafe(GENERATED_BYTES), True
    asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return asked, False


def _tell(says: str, name: str, made: str | None, *, as_json: bool) -> None:
    if as_json:
        typer.echo(orjson.dumps({"name": name, "password": made}).decode())
        return
    typer.echo(says)
    if made:
        typer.echo(f"Password, shown this once: {made}")
