"""When a group that was tried in vain is tried again."""

from __future__ import annotations

from scheduler.gangs.gang_attempts import UNTRIED


def test_the_timeout_passes_between_two_attempts_as_well() -> None:
    first = UNTRIED.failed(1000.0, "a", timeout=60)
    assert UNTRIED.after(9999.0, timeout=60) is UNTRIED
    assert first.after(1059.9, timeout=60) is first
    late = first.after(1060.0, timeout=60)
    assert late.is_late and late.message == "a" and late.is_paused(1089.9, pause=30)
    assert late.after(1089.9, timeout=60) is late, "the pause begins once"
    back = first.after(500.0, timeout=60)
    assert not back.after(559.9, timeout=60).is_late and back.after(560.0, timeout=60).is_late, "a clock set back"


def test_a_clock_that_is_set_back_ends_a_pause_and_begins_the_timeout_anew() -> None:
    late = UNTRIED.failed(1000.0, "a", timeout=0)
    assert not late.is_paused(900.0, pause=30)
    back = UNTRIED.failed(1000.0, "a", timeout=60).failed(500.0, "b", timeout=60)
    assert not back.is_late and back.failed(560.0, "c", timeout=60).is_late
