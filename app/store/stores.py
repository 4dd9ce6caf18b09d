"""Everything the console keeps: database, artifacts, the key for secrets, outbox, agents."""

from dataclasses import dataclass
from typing import Self

from sqlalchemy import Engine

from app.settings import Settings
from app.store.agents import Agents
from app.store.artifacts import ArtifactStore
from app.store.database import open_database
from app.store.outbox import Outbox
from app.store.vault import Vault


@dataclass(frozen=True)
class Stores:
    """Opened once for each process and handed to pages and jobs alike."""

    settings: Settings
    engine: Engine
    artifacts: ArtifactStore
    vault: Vault
    outbox: Outbox
    agents: Agents

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Open what *settings* name; the data folder and the key are made on first use."""
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        engine = open_database(settings.database)
        vault = Vault.open(settings.key_file)
        return cls(
            settings=settings,
            engine=engine,
            artifacts=ArtifactStore.open(settings),
            vault=vault,
            outbox=Outbox(engine, settings.jobs_database),
            agents=Agents(vault),
        )

    def close(self) -> None:
        self.outbox.close()
        self.engine.dispose()
