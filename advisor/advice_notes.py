"""Advice between the cycle that made it and the write that carries it; the recorder keeps it once it is written."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from placement.decisions.advice import Advice
from placement.decisions.recorder import DecisionRecorder

_MOST: Final = 10_000


class AdviceNotes:
    """Implements Advised of the loop. For any thread."""

    def __init__(self, recorder: DecisionRecorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._notes: OrderedDict[str, Advice] = OrderedDict()
        self.n_advised = 0  # so far

    def advised(self, advice: Advice) -> None:
        """Keep it until it is written."""
        with self._lock:
            self._notes[advice.uid] = advice
            self.n_advised += 1
            if len(self._notes) > _MOST:
                self._notes.popitem(last=False)

    def take(self, uid: str) -> Advice | None:
        """Return the advice about a pod, once; None = it is not known any more."""
        with self._lock:
            return self._notes.pop(uid, None)

    def written(self, advice: Advice | None) -> None:
        """kube-scheduler has it: keep it until the pod is bound."""
        if advice is not None:
            self._recorder.advised(advice)
