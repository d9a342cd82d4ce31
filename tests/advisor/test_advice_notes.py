"""Advice on its way from the cycle to the write."""

from __future__ import annotations

from advisor.advice_binder import AdviceNotes
from placement.decisions.recorder import DecisionRecorder
from testing.settable_clock import SettableClock
from tests.placement.decisions.made_up import AT, advice


def _notes() -> tuple[AdviceNotes, DecisionRecorder]:
    recorder = DecisionRecorder([], version="1.2.3", clock=SettableClock(AT))
    return AdviceNotes(recorder), recorder


def test_advice_is_taken_once_heard_of_once_written_and_does_not_pile_up() -> None:
    notes, _ = _notes()
    for given in (advice({"n1": 3}), last := advice({"n2": 3})):
        notes.advised(given)
    assert notes.take(last.uid) is last
    assert notes.take(last.uid) is None
    notes, recorder = _notes()
    notes.advised(advice({"n1": 3}))
    taken = notes.take("uid-1")
    assert recorder.figures().pending == 0, "kube-scheduler does not know of it yet"
    notes.written(taken)
    assert recorder.figures().pending == 1
    notes.written(None)
    assert recorder.figures().pending == 1
    notes, _ = _notes()
    for number in range(10_001):
        notes.advised(advice({"n1": 3}, uid=f"uid-{number}"))
    assert notes.take("uid-0") is None
    assert notes.take("uid-1") is not None and notes.take("uid-10000") is not None
