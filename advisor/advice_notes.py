"""Advice between the cycle that made it and the write that carries it, and the recorder that keeps it longer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from advisor.advice_requests import advice_note
from placement.decisions.advice import Advice
from placement.decisions.recorder import DecisionRecorder

_MOST: Final = 10_000


class AdviceNotes:
    """Implements Advised of the loop. For any thread."""

    def __init__(self, recorder: DecisionRecorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._notes: OrderedDict[str, str] = OrderedDict()

    def advised(self, advice: Advice) -> str | None:
        """Keep it until its pod is bound, and its text until it is written."""
        with self._lock:
            self._notes[advice.uid] = advice_note(advice)
            if len(self._notes) > _MOST:
                self._notes.popitem(last=False)
        return self._recorder.advised(advice)

    def take(self, uid: str) -> str:
        """Return the text of the annotation, once."""
        with self._lock:
            note = self._notes.pop(uid, None)
        return advice_note(None, "not known any more") if note is None else note
