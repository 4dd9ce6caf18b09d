"""Times in what the API is sent: with a zone, and then UTC."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is outside of the years 1 to 9999 in UTC") from error


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
