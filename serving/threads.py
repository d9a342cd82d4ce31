"""Work in a thread outside the event loop, of which nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

Answer = TypeVar("Answer")


async def in_thread(
    work: Callable[[], Answer], *, abandon_on_cancel: bool = False, limiter: anyio.CapacityLimiter | None = None
) -> Answer:
    """What `work` returns or raises.

    An error that anyio itself passes on refers to the future that passes it on, and that to the error. Both keep the
    frames between them, with the body of the request, until the garbage collector comes by: perhaps when all is quiet.
    """
    answers: list[Answer] = []

    def attempt() -> Exception | None:
        try:
            answers.append(work())
        except Exception as error:
            return error
        return None

    error = await anyio.to_thread.run_sync(attempt, abandon_on_cancel=abandon_on_cancel, limiter=limiter)
    try:
        if error is not None:
            raise error
    finally:
        del error
    return answers[0]
