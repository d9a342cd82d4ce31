"""What the routes of one application share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar, cast

import anyio
from fastapi import Depends, Request

from scorer.scorer_api import ScorerApi
from scorer.service.metrics import ServiceMetrics
from scorer.service.options import ServiceOptions
from serving.errors import Refusal
from serving.threads import in_thread

Answer = TypeVar("Answer")

# Costly answers are computed outside the event loop, a few at a time: more would only fight for the interpreter.
COSTLY_AT_ONCE = 4


@dataclass(slots=True)
class Service:
    """The scorer, how it is served, and whether this process is about to end.

    draining : set by the server on its way out; /readyz says no from then on
    """

    scorer: ScorerApi
    options: ServiceOptions
    metrics: ServiceMetrics
    draining: bool = False
    _was_ready: bool = False
    _limiter: anyio.CapacityLimiter | None = field(default=None)

    def require_ready(self) -> None:
        """Once ready, always ready: stale tables are the degradation ladder's matter. Raises Refusal."""
        if not self._was_ready:
            status = self.scorer.status()
            if not status.ready:
                raise Refusal(503, f"not ready: {status.not_ready_because or 'starting'}; ask again in a moment")
            self._was_ready = True

    async def in_thread(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` outside the event loop. Past the deadline the request stops waiting, but the work keeps
        its place.
        """
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(COSTLY_AT_ONCE)
        return await in_thread(work, abandon_on_cancel=True, limiter=self._limiter)


async def the_service(request: Request) -> Service:
    """Of this application."""
    return cast(Service, request.app.state.service)


async def ready_service(request: Request) -> Service:
    """Of this application, once the cluster has been read completely."""
    service = await the_service(request)
    service.require_ready()
    return service


TheService = Annotated[Service, Depends(the_service)]
ReadyService = Annotated[Service, Depends(ready_service)]
