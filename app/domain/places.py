"""Where in the console a step is done: a step names the place, the web knows its address."""

from typing import Literal

Place = Literal[
    "collect",  # the rung of the ladder, as the next two
    "ask once",
    "note",
    "record",  # the form, as the ones below
    "paste",
    "ask for a replay",
    "register",
    "edit target",
    "replay",  # its page, at what to do then
]
