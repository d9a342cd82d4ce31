"""The event loop of requests: uvloop's where it is installed, asyncio's own otherwise, a tenth slower.

Both give a TLS connection that is being closed 30 s to say goodbye. One that was given up because it fell silent will
not, and would outlive the loop: here it has a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

GOODBYE_SECONDS: Final = 0.5


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Makes the loop."""
    base: Any
    try:
        import uvloop

        base = uvloop.Loop
    except ImportError:
        base = asyncio.SelectorEventLoop

    class Impatient(base):  # type: ignore[misc]
        async def create_connection(self, protocol_factory: Any, *where: Any, **options: Any) -> Any:
            if options.get("ssl"):
                options.setdefault("ssl_shutdown_timeout", GOODBYE_SECONDS)
            return await super().create_connection(protocol_factory, *where, **options)

    made: Callable[[], asyncio.AbstractEventLoop] = Impatient
    return made
