from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable

import pytest

from extender.service.workers import AnswerDeadline, Workers
from serving.threads import in_thread
from tests.serving.event_loop import in_loop


class Body:
    """Stands for the body of a request: the test looks whether it is freed."""


@in_loop
async def test_work_runs_beside_the_event_loop() -> None:
    assert await in_thread(threading.get_ident) != threading.get_ident()


def _by_workers(work: Callable[[], None]) -> Awaitable[None]:
    return Workers(1, "test").run(work, AnswerDeadline(10))


@pytest.mark.parametrize("run", [in_thread, _by_workers])
@pytest.mark.usefixtures("without_garbage_collection")
@in_loop
async def test_an_error_keeps_nothing_alive(run: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
    async def route(body: Body) -> None:
        def work() -> None:
            raise KeyError(id(body))

        with pytest.raises(KeyError):
            await run(work)

    body = Body()
    left = weakref.ref(body)
    await route(body)
    del body
    await asyncio.sleep(0.2)  # the thread is idle
    assert left() is None
