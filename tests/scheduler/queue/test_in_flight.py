from __future__ import annotations

from scheduler.queue.in_flight import InFlight
from tests.scheduler.queue.queue_world import node_added


def test_a_pod_is_concerned_by_what_happened_after_it_was_popped() -> None:
    log = InFlight(10)
    first, second = node_added("1"), node_added("2")
    early = log.begin(1)
    log.record(first)
    late = log.begin(1)
    log.record(second)
    assert log.since(early) == [first, second]
    assert log.since(late) == [second]


def test_what_concerns_nobody_any_more_is_forgotten() -> None:
    log = InFlight(10)
    log.record(node_added())
    assert len(log) == 0  # nobody is in flight
    early = log.begin(2)
    log.record(node_added())
    late = log.begin(1)
    log.record(node_added())
    log.end(early)
    assert len(log) == 2
    log.end(early)
    assert len(log) == 1
    assert log.since(late) is not None
    log.end(late)
    assert len(log) == 0


def test_only_the_last_events_are_kept() -> None:
    log = InFlight(2)
    early = log.begin(1)
    events = [node_added(str(number)) for number in range(3)]
    log.record(events[0])
    late = log.begin(1)
    log.record(events[1])
    log.record(events[2])
    assert log.since(early) is None
    assert log.since(late) == events[1:]
