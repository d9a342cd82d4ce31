"""Advice on its way from the cycle to the write."""

from __future__ import annotations

import orjson

from advisor.advice_notes import AdviceNotes
from placement.decisions.recorder import DecisionRecorder
from testing.settable_clock import SettableClock
from tests.placement.decisions.made_up import AT, advice, pod


def _notes() -> tuple[AdviceNotes, DecisionRecorder]:
    recorder = DecisionRecorder([], version="1.2.3", clock=SettableClock(AT))
    return AdviceNotes(recorder), recorder


def test_a_note_is_taken_once() -> None:
    notes, _ = _notes()
    notes.advised(advice({"n1": 3}))
    assert orjson.loads(notes.take("uid-1"))["node"] == "n1"
    assert orjson.loads(notes.take("uid-1")) == {"node": None, "because": "not known any more"}


def test_the_last_advice_counts() -> None:
    notes, _ = _notes()
    notes.advised(advice({"n1": 3}))
    notes.advised(advice({"n2": 3}))
    assert orjson.loads(notes.take("uid-1"))["node"] == "n2"


def test_the_recorder_keeps_it_until_the_pod_is_bound_and_says_where_it_is_already() -> None:
    notes, recorder = _notes()
    assert notes.advised(advice({"n1": 3})) is None
    notes.take("uid-1")
    assert recorder.figures().pending == 1
    recorder.bound(pod("early", "n7"))
    assert notes.advised(advice({"n1": 3}, uid="early")) == "n7"


def test_notes_that_nobody_takes_do_not_pile_up() -> None:
    notes, _ = _notes()
    for number in range(10_001):
        notes.advised(advice({"n1": 3}, uid=f"uid-{number}"))
    assert "not known" in notes.take("uid-0")
    assert orjson.loads(notes.take("uid-1"))["node"] == orjson.loads(notes.take("uid-10000"))["node"] == "n1"
