from __future__ import annotations

from serving.kubernetes_access import TimedCache
from testing.settable_clock import SettableClock


def test_an_answer_holds_for_its_time_and_the_oldest_makes_room() -> None:
    clock = SettableClock(0.0)
    cache: TimedCache[str, int] = TimedCache(seconds=10, most=5, clock=clock)
    cache.put("a", 1)
    for clock.now in (1.0, 9.9):
        assert cache.get("a") == 1
    clock.now = 10.0
    assert cache.get("a") is None
    assert len(cache) == 0
    cache.put("a", 2)
    assert cache.get("a") == 2
    cache = TimedCache(seconds=10, most=2, clock=SettableClock(0.0))
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)
