"""The lock of the tables: how long it is waited for and held, and who holds it for long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.timed_lock import LockCollector, TimedLock


def counted(lock: TimedLock[str]) -> dict[str, float]:
    """Samples without a bound, and how often the lock was held for up to a tenth of a millisecond."""
    samples = [sample for family in LockCollector(lock).collect() for sample in family.samples]
    return {one.name: one.value for one in samples if one.labels.get("le", "+Inf") == "+Inf"}


def test_it_yields_its_value_and_counts_what_is_taken_again_inside_once() -> None:
    lock = TimedLock("tables")
    with lock as value, lock as again:
        assert (value, again) == ("tables", "tables")
    with pytest.raises(ZeroDivisionError), lock:
        _ = 1 / 0
    found = counted(lock)
    assert found["forecast_tables_lock_held_seconds_count"] == 2
    assert found["forecast_tables_lock_wait_seconds_count"] == 0


def test_who_finds_it_taken_waits_and_is_counted() -> None:
    lock, is_asked = TimedLock("tables"), threading.Event()

    def ask() -> None:
        is_asked.set()
        with lock:
            pass

    thread = threading.Thread(target=ask)
    with lock:
        thread.start()
        assert is_asked.wait(30)
        time.sleep(0.05)
        with lock:  # the holder itself does not wait
            pass
    thread.join(30)
    found = counted(lock)
    assert found["forecast_tables_lock_wait_seconds_count"] == 1
    assert 0 < found["forecast_tables_lock_wait_seconds_sum"] < 30
    assert found["forecast_tables_lock_held_seconds_count"] == 2


def slow_holder(lock: TimedLock[str]) -> None:
    with lock:
        time.sleep(0.12)


@contextmanager
def holding(lock: TimedLock[str]) -> Iterator[None]:
    with lock:
        yield


def slow_through_another(lock: TimedLock[str]) -> None:
    with holding(lock):
        time.sleep(0.12)


def test_who_holds_it_for_long_is_named_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    lock = TimedLock("tables")
    with caplog.at_level(logging.INFO):
        for hold in (slow_holder, slow_holder, slow_through_another):
            hold(lock)
        with lock:
            pass
    assert [record.__dict__["by"].rpartition(".")[2] for record in caplog.records] == [
        "slow_holder",
        "slow_through_another",
    ]
    assert caplog.records[0].__dict__["in_thread"] == threading.current_thread().name
