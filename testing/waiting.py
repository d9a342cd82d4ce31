"""Waiting for an event, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import httpx

LONG: Final = 120.0
"""Seconds until what must happen has happened on a machine that has much else to do."""


def eventually(condition: Callable[[], object], seconds: float = LONG) -> bool:
    """Whether it becomes true within `seconds`; an answer that does not come counts as false.

    Between two looks it waits as long as one takes, so that looking never has more than half of the time: what is
    waited for needs the processors, too.
    """
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        with suppress(httpx.HTTPError):
            if condition():
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(max(0.01, min(time.monotonic() - began, 1.0)))
