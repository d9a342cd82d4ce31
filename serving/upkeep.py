"""The threads around a part of a service, and what the service shows of it over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

from fastapi import APIRouter
from prometheus_client.registry import Collector


class Background(Protocol):
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

    threads: Sequence[Background] = ()
    collectors: Sequence[Collector] = ()
    routers: Sequence[APIRouter] = ()
    bodies: Sequence[type] = ()


@contextmanager
def running(threads: Sequence[Background]) -> Iterator[None]:
    """Run threads while the context lasts: they start in this order and stop in reverse."""
    with ExitStack() as stack:
        for thread in threads:
            thread.start()
            stack.callback(thread.stop)
        yield
