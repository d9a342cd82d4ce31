"""Policies from a file, looked at twice a second: also a mounted ConfigMap, whose files are links that are swapped.

The whole text is compared, not times: an edit within one tick of the clock that leaves the size alone is one, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from base.errors import InputError
from base.periodic_task import PeriodicTask
from placement.policies.document_reading import document_text, read_document_file
from placement.policies.provider import PolicyOutcome, PolicyProvider

_LOOK_SECONDS: Final = 0.5


class PolicyFile:
    """A changed file is offered once it reads the same twice: an editor may be half-way through writing it."""

    def __init__(
        self,
        path: Path,
        provider: PolicyProvider,
        *,
        every_seconds: float = _LOOK_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """clock: unix seconds"""
        self._path, self._provider, self._clock = path, provider, clock
        self._last_contact: float | None = None
        self._last: bytes | None = None
        self._is_first = True
        self._every = PeriodicTask("policy-file", every_seconds, self.look)

    def start(self) -> None:
        """Look once, so that the policies are there, and from then on in a thread."""
        self.look()
        self._every.start()

    def stop(self) -> None:
        """End the thread."""
        self._every.stop()

    @property
    def last_contact(self) -> float | None:
        """Return unix seconds of the last read that succeeded; None = none has."""
        return self._last_contact

    def look(self) -> PolicyOutcome | None:
        """Read the file and offer what is new; None = nothing is."""
        was_first, self._is_first = self._is_first, False
        try:
            content = read_document_file(self._path)
        except FileNotFoundError:
            self._last_contact = self._clock()
            return self._provider.gone()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return self._provider.refuse(f"{self._path} cannot be read: {reason or error}")
        self._last_contact = self._clock()
        before, self._last = self._last, content
        if content != before and not was_first:
            return None
        try:
            text = document_text(content)
        except InputError as error:
            return self._provider.refuse(f"{self._path} cannot be read: {error}")
        return self._provider.offer(text)
