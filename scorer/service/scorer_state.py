"""What the routes of one application share, and how they zip large answers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar, cast

import anyio
from fastapi import Depends, Request
from starlette.responses import Response

from scorer.judgement import Judge
from scorer.scorer_api import ScorerApi
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.json_answers import Refusal
from serving.threads import in_thread

Answer = TypeVar("Answer")


# Costly answers are computed outside the event loop, a few at a time: more would only fight for the interpreter.
COSTLY_AT_ONCE = 4


@dataclass(slots=True)
class ScorerService:
    """The scorer, how it is served, and whether this process is about to end.

    judge    : of the component that places pods in this process: explanations name the node that it would choose; None
               = there is none
    draining : set by the server on its way out; /readyz says no from then on
    """

    scorer: ScorerApi
    options: ScorerServiceOptions
    metrics: ScorerServiceMetrics
    judge: Judge | None = None
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


async def the_service(request: Request) -> ScorerService:
    """Return the service that this application answers for."""
    return cast(ScorerService, request.app.state.service)


async def ready_service(request: Request) -> ScorerService:
    """Of this application, once the cluster has been read completely."""
    service = await the_service(request)
    service.require_ready()
    return service


TheService = Annotated[ScorerService, Depends(the_service)]
ReadyService = Annotated[ScorerService, Depends(ready_service)]


async def zipped_response(
    request: Request,
    service: ScorerService,
    make: Callable[[], bytes],
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return what `make` returns, made and zipped outside the event loop."""
    zipped = "gzip" in request.headers.get("accept-encoding", "")

    def made() -> bytes:
        content = make()
        # 5,000 nodes are 30 MB of metrics and 1.5 MB zipped; level 1 is fast and releases the interpreter's lock.
        return zlib.compress(content, level=1, wbits=31) if zipped else content

    about = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if zipped else {})
    return Response(await service.in_thread(made), 200, about | dict(headers or {}), media_type=media_type)
