from __future__ import annotations

import threading
import time

from scheduler.queue.options import BackoffOptions, QueueOptions
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.sorting import PrioritySort
from tests.scheduler.queue.queue_world import World, a_pod

_PRODUCERS, _PODS = 3, 300
_LIMIT = 50.0  # seconds; only a hang takes that long. Below what `pop` sleeps at most, so that a lost wake-up shows


def _real_queue() -> SchedulingQueue:
    world = World()
    return SchedulingQueue(
        sort=PrioritySort(),
        gate=world.gate,
        hints=world.hints,
        units=world,
        options=QueueOptions(backoff=BackoffOptions(initial=0.001, longest=0.01), unschedulable_flush=0.05),
        clock=time.time,
    )


def test_who_waits_is_told_of_a_new_pod_a_backoff_that_is_over_and_of_the_end() -> None:
    queue = _real_queue()
    popped: list[str] = []
    ended = threading.Event()

    def consume() -> None:
        while (first := queue.pop(most=1, wait_seconds=float("inf"))) is not None:
            popped.append(first.pods[0].pod.uid)
            if first.pods[0].attempts < 3:
                queue.failed(first.pods)  # nobody else ticks
            else:
                queue.done(first.pods[0].pod.uid)
        ended.set()

    consumer = threading.Thread(target=consume)
    consumer.start()
    try:
        for name in "abc":
            queue.put(a_pod(name))
        until = time.monotonic() + _LIMIT
        while queue.waiting() and time.monotonic() < until:
            time.sleep(0.005)
        assert sorted(popped) == list("aaabbbccc")
        assert not ended.is_set()
    finally:
        queue.close()
        consumer.join(_LIMIT)
    assert ended.is_set()
