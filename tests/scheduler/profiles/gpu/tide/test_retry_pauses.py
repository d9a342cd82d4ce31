"""How long a training is left alone that could not be scaled."""

from __future__ import annotations

from scheduler.profiles.gpu.tide.retry_pauses import Pauses


def test_pauses_grow_to_ten_minutes_and_begin_anew() -> None:
    pauses, now, seen = Pauses(30.0), 0.0, []
    assert pauses.left("a", now) == 0
    for _ in range(6):
        pauses.failed("a", now)
        seen.append(pauses.left("a", now))
        now += seen[-1]
        assert pauses.left("a", now) == 0 and pauses.left("b", now) == 0
    assert seen == [60, 120, 240, 480, 600, 600]
    pauses.went_well("a")
    pauses.failed("a", now)
    assert pauses.left("a", now) == 60


def test_a_clock_that_is_set_back_prolongs_no_pause() -> None:
    pauses = Pauses(30.0)
    pauses.failed("a", 1e9)
    assert pauses.left("a", 1e9 - 3600) == 0


def test_who_is_gone_is_forgotten() -> None:
    pauses = Pauses(30.0)
    pauses.failed("a", 0.0)
    pauses.failed("b", 0.0)
    pauses.keep({"b"})
    assert pauses.left("a", 0.0) == 0 and pauses.left("b", 0.0) == 60
