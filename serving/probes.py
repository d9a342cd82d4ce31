"""Liveness on a port of its own, by a thread with an event loop of its own: a flood of requests does not delay it.

On the port of the service a probe waits in line behind all connections that came before. This one only asks whether the
service's event loop has turned lately.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from serving.documents import bare_app

_STUCK_SECONDS: Final = 30.0


class Heartbeat:
    """When the event loop of the service turned last. clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def beat(self) -> None:
        self._last = self._clock()

    def stuck_for(self) -> float:
        """Seconds for which it has stood still; 0 = it has turned within the last 30 s."""
        since = self._clock() - self._last
        return since if since > _STUCK_SECONDS else 0.0


def probe_app(heartbeat: Heartbeat) -> FastAPI:
    """GET /healthz, and nothing else."""
    app = bare_app("forecast-scheduler probes")
    app.state.service = SimpleNamespace(draining=False)

    @app.get("/healthz")
    async def healthz() -> Response:
        if stuck := heartbeat.stuck_for():
            return PlainTextResponse(f"the event loop has stood still for {stuck:.0f} s\n", 503)
        return PlainTextResponse("ok\n")

    return app
