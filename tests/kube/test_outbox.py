"""Nobody waits for what an outbox does, and it gives back no more than it was given."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from kube.outbox import Outbox
from kube.write_pacing import TokenBucket


def test_everything_put_in_is_handed_over_in_order_also_what_waits_at_the_end() -> None:
    got: list[int] = []
    outbox: Outbox[int] = Outbox("test", got.extend, batch=3)
    for number in range(5):
        assert outbox.put(number)
    outbox.start()
    for number in range(5, 10):
        assert outbox.put(number)
    outbox.stop()
    assert got == list(range(10))
    assert not outbox.put(10)


def test_a_full_queue_refuses_and_counts_while_the_other_side_hangs() -> None:
    free, at_work, got = threading.Event(), threading.Event(), list[int]()

    def hang(items: Sequence[int]) -> None:
        at_work.set()
        assert free.wait(10)
        got.extend(items)

    outbox: Outbox[int] = Outbox("test", hang, max_items=4, batch=1)
    outbox.start()
    outbox.put(0, weight=7)
    assert at_work.wait(10)
    assert outbox.weight == 0
    assert [outbox.put(number, weight=2) for number in range(1, 8)] == [True] * 4 + [False] * 3
    assert (outbox.refused, outbox.weight) == (3, 8)
    free.set()
    outbox.stop()
    assert got == [0, 1, 2, 3, 4] and outbox.weight == 0


def test_what_fails_is_lost_alone(caplog: pytest.LogCaptureFixture) -> None:
    got: list[int] = []

    def handle(items: Sequence[int]) -> None:
        if 1 in items:
            raise RuntimeError("on purpose")
        got.extend(items)

    outbox: Outbox[int] = Outbox("test", handle, batch=1)
    for number in range(3):
        outbox.put(number)
    outbox.start()
    outbox.stop()
    assert got == [0, 2]
    assert "items of a queue were lost" in caplog.text


def test_a_bucket_gives_a_burst_and_its_rate_whatever_the_clock() -> None:
    bucket = TokenBucket(rate=5, burst=50)
    assert sum(bucket.take(100.0) for _ in range(80)) == 50
    assert sum(bucket.take(101.0) for _ in range(80)) == 5
    assert sum(bucket.take(1_000.0) for _ in range(80)) == 50
    bucket = TokenBucket(rate=1, burst=1)
    assert bucket.take(1_000.0)
    assert not bucket.take(10.0)
    assert bucket.take(11.0)
    bucket = TokenBucket(rate=0, burst=2)
    assert [bucket.take(at) for at in (1.0, 2.0, 3.0, 1e9)] == [True, True, False, False]
