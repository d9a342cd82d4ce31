"""How far a look is, and how long its parts took."""

from __future__ import annotations

from forecast_scheduler.commands.look.parts import LookParts
from testing.settable_clock import SettableClock


def test_the_whole_advances_with_the_part_under_way_and_ends_at_a_hundred() -> None:
    heard: list[tuple[str, int]] = []
    clock = SettableClock(0.0)
    parts = LookParts(lambda stage, done, total: heard.append((stage, done)), clock)
    for day in range(3):
        parts.progress("read Prometheus", day, 2)
    parts.progress("forecast", 1, 2)
    with parts.part("cluster"):
        clock.now = 7.0
    with parts.part("capacity"):
        parts.progress("capacity", 1, 2)
    assert parts.end({"fit": 1.0}) == {"fit": 1.0, "cluster": 7.0, "capacity": 0.0}
    whole = [done for stage, done in heard if stage == "per cent of the look"]
    assert whole == sorted(whole) and (whole[0], whole[-1]) == (0, 100) and len(set(whole)) > 4
    assert ("forecast", 1) in heard
