"""Threads that nobody has to wait for: a silent host must not keep a process from ending."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from types import TracebackType
from typing import Generic, Self, TypeVar

Result = TypeVar("Result")


def aside(work: Callable[[], Result], *, name: str) -> "Future[Result]":
    """Run *work* in a thread that ends with the process; what it returns or raises."""
    future: Future[Result] = Future()

    def run() -> None:
        with _HandedOver(future):
            future.set_result(work())

    future.set_running_or_notify_cancel()
    Thread(target=run, name=name, daemon=True).start()
    return future


class _HandedOver(Generic[Result]):
    """What ends a thread goes to whoever waits for it: there it is raised, nothing is lost."""

    def __init__(self, future: "Future[Result]") -> None:
        self._future = future

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if error is not None:
            self._future.set_exception(error)
        return True
