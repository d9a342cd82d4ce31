"""Waiting in a thread for what a session does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from base.errors import ForecastError
from kube.session.session_calls import CallTimedOut, call
from testing.waiting import eventually


class Loop:
    """Implements calls.Submits by an event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, Any], /) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(60)
        self.loop.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.end()


def test_a_call_returns_what_the_work_returns_and_raises_what_it_raises(loop: Loop) -> None:
    async def seven() -> int:
        return 7

    async def fails() -> None:
        raise TimeoutError("its own")

    assert call(loop, seven(), 30.0, "counting") == 7
    with pytest.raises(TimeoutError, match="its own") as caught:
        call(loop, fails(), 30.0, "failing")
    assert not isinstance(caught.value, CallTimedOut)


def test_a_call_that_does_not_end_is_given_up_and_cancelled(loop: Loop) -> None:
    cancelled = threading.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(
        CallTimedOut, match=r"reading plans did not end within 0\.05 s and was given up: look at"
    ) as caught:
        call(loop, never(), 0.05, "reading plans")
    assert {ForecastError, TimeoutError} <= set(type(caught.value).__mro__)
    assert eventually(cancelled.is_set)
