"""Every setting, read and checked once. Documented in docs/settings.md; a test keeps the two equal.

Variables are named ``INCIDENT_CONSOLE_<FIELD>``; a ``.env`` file in the working folder is
read too, the environment wins. A variable of that prefix that no field knows is an error.
"""

import difflib
import os
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from pydantic_settings.sources import DotEnvSettingsSource

from app.errors import Misconfigured

PREFIX = "INCIDENT_CONSOLE_"
GIB = 1024**3

Words = Annotated[tuple[str, ...], NoDecode]


class Settings(BaseSettings):
    """What an operator of the console can choose. Immutable once read."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        extra="ignore",
        frozen=True,
        ignored_types=(cached_property,),
    )

    data_dir: Path = Path("data")
    database_url: str | None = None  # default: SQLite in data_dir
    jobs_database_url: str | None = (
        None  # default: SQLite in data_dir, or the dbos schema's own PostgreSQL database
    )
    storage_url: str | None = None  # default: data_dir/artifacts; file:///… or s3://bucket/prefix
    secret_key_file: Path | None = None  # default: data_dir/secret.key, made on first start
    first_admin_password_file: Path | None = None  # makes the user "admin" while no user exists
    public_url: str | None = None  # links in shares and set-up; default: as the browser called us
    trusted_hosts: Words = ("localhost", "127.0.0.1", "[::1]")  # "*.example.org" allowed
    trusted_proxies: Words = ()  # addresses whose X-Forwarded-For and -Proto are believed
    allowed_targets: Words = ()  # CIDRs and host names; empty: any but link-local and metadata
    min_free_bytes: int = Field(default=1 * GIB, ge=0)
    max_artifact_bytes: int = Field(default=16 * GIB, gt=0)
    session_hours: float = Field(default=12.0, gt=0, le=24 * 30)
    coredump_fetch_max_bytes: int = Field(default=2 * GIB, ge=0)
    collect_concurrency: int = Field(default=8, ge=1, le=256)
    replay_concurrency: int = Field(default=2, ge=1, le=64)
    log_format: Literal["auto", "json", "text"] = "auto"  # auto: text on a terminal
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("trusted_hosts", "trusted_proxies", "allowed_targets", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(word.strip() for word in value.split(",") if word.strip())
        return value

    @field_validator("allowed_targets")
    @classmethod
    def _networks_are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for word in value:
            if "/" in word:
                ip_network(word, strict=False)
        return value

    @classmethod
    def read(cls, **given: object) -> Self:
        """The settings of this process, *given* ones first; raises Misconfigured."""
        _refuse_unknown(cls)
        try:
            return cls(**given)  # type: ignore[arg-type]
        except ValidationError as error:
            first = error.errors()[0]
            name = PREFIX + str(first["loc"][0] if first["loc"] else "").upper()
            raise Misconfigured(
                f"The setting {name} is not usable: {first['msg']}.", fix="See docs/settings.md."
            ) from error

    @cached_property
    def database(self) -> str:
        """SQLAlchemy URL of the console's own database."""
        return self.database_url or f"sqlite:///{self.data_dir.resolve() / 'console.sqlite'}"

    @cached_property
    def jobs_database(self) -> str:
        """URL of the durable engine's bookkeeping, disposable: our job rows are the truth."""
        if self.jobs_database_url:
            return self.jobs_database_url
        if self.database_url and not self.database_url.startswith("sqlite"):
            return self.database_url.replace("postgresql+psycopg://", "postgresql://")
        return f"sqlite:///{self.data_dir.resolve() / 'jobs.sqlite'}"

    @cached_property
    def storage(self) -> str:
        """URL of the artifact store."""
        return self.storage_url or (self.data_dir.resolve() / "artifacts").as_uri()

    @cached_property
    def key_file(self) -> Path:
        """Where the key that seals stored credentials lies."""
        return self.secret_key_file or self.data_dir / "secret.key"


def _refuse_unknown(settings: type[Settings]) -> None:
    known = {PREFIX + name.upper() for name in settings.model_fields}
    dotenv = DotEnvSettingsSource(settings, env_file=".env")._read_env_files()  # noqa: SLF001
    given = {name.upper() for name in (*os.environ, *dotenv) if name.upper().startswith(PREFIX)}
    for name in sorted(given - known):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        raise Misconfigured(
            f"There is no setting {name}.",
            fix=f"Did you mean {near[0]}?" if near else "See docs/settings.md.",
        )
