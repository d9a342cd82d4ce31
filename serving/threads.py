"""Threads of a service: those that run around one of its parts, and work outside the event loop, of which nothing
stays behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread
from fastapi import APIRouter
from prometheus_client.registry import Collector

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


class BackgroundThread(Protocol):
    """Work in a thread of its own."""

    def start(self) -> None:
        """Begin; once only."""

    def stop(self) -> None:
        """End, and wait for work under way."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What a part of a service runs and shows in addition to answering calls.

    threads    : start in this order, and stop in reverse
    collectors : for /metrics
    routers    : further routes, each with the schemas of its answers in `bodies`
    """

    threads: Sequence[BackgroundThread] = ()
    collectors: Sequence[Collector] = ()
    routers: Sequence[APIRouter] = ()
    bodies: Sequence[type] = ()


def joined(parts: Iterable[Upkeep]) -> Upkeep:
    """Return all of them as one, in this order."""
    every = tuple(parts)
    return Upkeep(
        tuple(thread for one in every for thread in one.threads),
        tuple(collector for one in every for collector in one.collectors),
        tuple(router for one in every for router in one.routers),
        tuple(body for one in every for body in one.bodies),
    )


@contextmanager
def running(threads: Sequence[BackgroundThread]) -> Iterator[None]:
    """Run threads while the context lasts: they start in this order and stop in reverse."""
    with ExitStack() as stack:
        for thread in threads:
            thread.start()
            stack.callback(thread.stop)
        yield
