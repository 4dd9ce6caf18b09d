"""What a browser's tab shows beside its title: one icon for each state, told apart by shape."""

QUIET = "favicon.svg"  # a pulse
FAILING = "favicon-failing.svg"  # a diamond, as the mark of what is bad
AT_WORK = "favicon-running.svg"  # plays
DONE = "favicon-done.svg"  # a tick
STOPPED = "favicon-stopped.svg"  # two bars: it waits for a person
_OF_STATE = {
    "waiting": AT_WORK,
    "planning": AT_WORK,
    "queued": AT_WORK,
    "running": AT_WORK,
    "done": DONE,
    "succeeded": DONE,
    "failed": FAILING,
    "interrupted": STOPPED,
    "refused": STOPPED,
}


def icon_of(state: str) -> str:
    """The file in static/ for a job or a replay in *state*."""
    return _OF_STATE.get(state, QUIET)


def icon_of_list(failing: int) -> str:
    """The file in static/ for pages that are of no single state: whether any incident fails."""
    return FAILING if failing else QUIET
