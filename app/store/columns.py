"""What all tables have in common: names of constraints, numbered keys, JSON."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Integer, MetaData
from sqlmodel import Field, SQLModel

NAMES = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
SQLModel.metadata.naming_convention = NAMES
metadata: MetaData = SQLModel.metadata

# SQLite numbers rows by itself only in a plain INTEGER key.
Number = BigInteger().with_variant(Integer, "sqlite")


def json_column(*, nullable: bool = False) -> Any:  # noqa: ANN401  (sqlmodel's Field is typed Any)
    return Field(sa_column=Column(JSON, nullable=nullable))


def key_column() -> Any:  # noqa: ANN401
    return Field(default=None, sa_column=Column(Number, primary_key=True, autoincrement=True))
