"""Threads that nobody has to wait for: a silent host must not keep a process from ending."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


def aside(work: Callable[[], Result], *, name: str) -> "Future[Result]":
    """Run *work* in a thread that ends with the process; what it returns or raises."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  (handed to whoever waits for it)
            future.set_exception(error)

    future.set_running_or_notify_cancel()
    Thread(target=run, name=name, daemon=True).start()
    return future
