from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace

from scheduler.loop_settings import QueueOptions
from scheduler.queue.active import PrioritySort
from scheduler.queue.queued_pods import Popped
from scheduler.queue.scheduling_queue import SchedulingQueue
from testing.constants import with_constants
from tests.scheduler.queue.queue_world import FIT, World, a_pod, node_added

_PRODUCERS, _PODS = 3, 300
_LIMIT = 50.0  # seconds; only a hang takes that long. Below what `pop` sleeps at most, so that a lost wake-up shows


def _real_queue() -> SchedulingQueue:
    world = World()
    return SchedulingQueue(
        sort=PrioritySort(),
        gate=world.gate,
        hints=world.hints,
        units=world,
        options=with_constants(QueueOptions(), backoff_initial=0.001, backoff_longest=0.01, unschedulable_flush=0.05),
        clock=time.time,
    )


def test_all_pods_come_out_whatever_happens_to_them_on_the_way() -> None:
    queue = _real_queue()
    bound: Counter[str] = Counter()
    in_hand: set[str] = set()
    wrong: list[str] = []
    lock, all_bound, quiet = threading.Lock(), threading.Event(), threading.Event()

    def produce(n: int) -> None:
        for i in range(_PODS):
            gang = f"ns/g{n}-{i // 5}" if i % 2 else ""
            queue.put(a_pod(f"p{n}-{i}", unit=f"u{n}-{i // 20}", gang=gang, zone="x"))

    def disturb() -> None:
        while not quiet.is_set():
            queue.happened(node_added("x"))
            queue.tick()
            queue.lengths()
            time.sleep(0.001)

    def consume(seed: int) -> None:
        turn = seed
        while (popped := _next(queue)) is not None:
            uids = [queued.pod.uid for queued in popped.pods]
            with lock:
                wrong.extend(uid for uid in uids if uid in in_hand or uid in bound)
                in_hand.update(uids)
            for queued in popped.pods:
                queue.put(replace(queued.pod, created=float(turn)))  # its status changed
            turn += 1
            with lock:
                in_hand.difference_update(uids)
                if turn % 3 == 2:
                    bound.update(uids)
            if turn % 3 == 0:
                queue.rejected(popped.pods, frozenset({FIT}), "no room")
            elif turn % 3 == 1:
                queue.failed(popped.pods)
            else:
                for uid in uids:
                    queue.done(uid)
                if len(bound) == _PRODUCERS * _PODS:
                    all_bound.set()

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(_PRODUCERS)]
    threads += [threading.Thread(target=consume, args=(seed,)) for seed in range(2)]
    disturbing = threading.Thread(target=disturb)
    for thread in (*threads, disturbing):
        thread.start()
    try:
        assert all_bound.wait(_LIMIT)
    finally:
        queue.close()
        quiet.set()
        for thread in (*threads, disturbing):
            thread.join(_LIMIT)
    assert not wrong
    assert set(bound.values()) == {1}
    assert queue.waiting() == [] and queue.in_flight == 0


def _next(queue: SchedulingQueue) -> Popped | None:
    return queue.pop(most=7, wait_seconds=_LIMIT)


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
