"""Waits in one thread for what a session does in its event loop: never without a limit."""

from __future__ import annotations

from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from base.errors import ForecastError

T = TypeVar("T")


class Submits(Protocol):
    """kube.session.api_session.ApiSession."""

    def submit(self, coroutine: Coroutine[Any, Any, T], /) -> Future[T]:
        """Run it in the event loop of the session."""


class CallTimedOut(ForecastError, TimeoutError):
    """The work did not end in time, and has been cancelled."""


def call(session: Submits, work: Coroutine[Any, Any, T], seconds: float, what: str) -> T:
    """What a coroutine returns that runs in the loop of a session. what: it does, for the error.

    Raises CallTimedOut, SessionOver, and what the coroutine raises.
    """
    future = session.submit(work)
    try:
        return future.result(max(seconds, 0.0))
    except TimeoutError as error:
        if future.done() and not future.cancelled():  # its own, not ours
            raise
        future.cancel()
        raise CallTimedOut(
            f"{what} did not end within {seconds:g} s and was given up: look at the load of the API server"
        ) from error
