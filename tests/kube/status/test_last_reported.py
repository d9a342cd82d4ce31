from __future__ import annotations

from kube.status.pod_conditions import LastReported


def test_only_what_is_new_is_news_or_after_a_while() -> None:
    told = LastReported(10)
    assert told.is_news("a", "x", 0.0)
    told.note("a", "x", 0.0)
    assert not told.is_news("a", "x", 1e9) and told.is_news("a", "y", 0.0) and told.is_news("b", "x", 0.0)
    told.forget("a")
    assert told.is_news("a", "x", 0.0) and "a" not in told
    told = LastReported(10, again_after=300.0)
    told.note("a", "x", 1000.0)
    assert not told.is_news("a", "x", 1299.9) and told.is_news("a", "x", 1300.0)
    assert told.is_news("a", "x", 900.0), "the clock was set back"


def test_it_remembers_the_last_ones() -> None:
    told = LastReported(2)
    for uid in "abac":
        told.note(uid, "x", 0.0)
    assert len(told) == 2 and told.is_news("b", "x", 0.0) and not told.is_news("a", "x", 0.0)
