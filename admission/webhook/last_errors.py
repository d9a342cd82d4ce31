"""The latest error of each binding that this process has seen, until the status writer has written it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from kube.decoding.stored_templates import LastError

_MOST: Final = 10_000


class LastErrors:
    """For any thread. Names come from bindings that exist, and are bounded all the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[str, LastError] = {}

    def put(self, binding: str, error: LastError) -> None:
        with self._lock:
            if binding in self._errors or len(self._errors) < _MOST:
                self._errors[binding] = error

    def pending(self) -> Mapping[str, LastError]:
        """Return what is not written yet, by binding."""
        with self._lock:
            return dict(self._errors)

    def told(self, binding: str, error: LastError) -> None:
        """This one is in the status, or something newer: forget it, unless another has come meanwhile."""
        with self._lock:
            if self._errors.get(binding) == error:
                del self._errors[binding]
