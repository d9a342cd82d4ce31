"""The status of a scheduler, read from a real queue and made-up neighbours."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kube.leader_election.lease import LeaseStatus
from kube.objects.objects import PodInfo
from placement.status import SUCCESS, Code, Status
from scheduler.metrics import SchedulingGauges
from scheduler.queue.options import QueueOptions
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.sorting import PrioritySort
from scheduler.queue.unit import UnitOf
from scheduler.service.answers import moment
from scheduler.service.live import LiveScheduling
from tests.placement.small_cluster import pod_of

LEADS = LeaseStatus(True, "replica-1", "")


class _OwnUnits:
    def unit_of(self, pod: PodInfo) -> UnitOf:
        return UnitOf(pod.uid, None, False)


def _gate(pod: PodInfo) -> Status:
    return Status(Code.WAIT, "Gang", "waits for members") if pod.name == "gated" else SUCCESS


@pytest.fixture
def queue() -> SchedulingQueue:
    return SchedulingQueue(
        sort=PrioritySort(),
        gate=_gate,
        hints=lambda pod: {},
        units=_OwnUnits(),
        options=QueueOptions(),
        clock=lambda: 1000.0,
    )


def _live(queue: SchedulingQueue, **changed: object) -> LiveScheduling:
    live = LiveScheduling(
        profiles={"online": "forecast-scheduler"},
        queue=queue,
        bindings=SimpleNamespace(in_flight=5),
        since_cycle=lambda: 0.5,
        assumed=lambda: 7,
        gangs=lambda: {"Running": 2},
        gang_wait=lambda: 30.0,
        lease=lambda: LEADS,
    )
    return replace(live, **changed)  # type: ignore[arg-type]


def test_pods_that_wait_are_told_with_why(queue: SchedulingQueue) -> None:
    queue.put(replace(pod_of("stuck"), priority=3))
    popped = queue.pop(most=1, wait_seconds=0)
    assert popped is not None
    queue.rejected(popped.pods, frozenset({"NodeResourcesFit"}), "0/1 nodes are available")
    for name in ("gated", "next"):
        queue.put(replace(pod_of(name), scheduler_name="forecast-scheduler"))
    live = _live(queue)
    told = {one.name: one for one in live.waiting()}
    stuck = told["stuck"]
    assert (stuck.part, stuck.attempts, stuck.since, stuck.priority) == ("unschedulable", 1, moment(1000.0), 3)
    assert (stuck.rejected_by, stuck.message) == (["NodeResourcesFit"], "0/1 nodes are available")
    assert (told["gated"].part, told["gated"].message) == ("gated", "waits for members")
    assert (told["next"].part, told["next"].profile) == ("active", "forecast-scheduler")
    pending = live.state().pending
    assert (pending["active"], pending["unschedulable"], pending["gated"]) == (1, 1, 1)


def test_the_state_is_gathered(queue: SchedulingQueue) -> None:
    state = _live(queue).state()
    assert (state.leader, state.is_leader, state.in_flight, state.assumed) == ("replica-1", True, 5, 7)
    assert (state.gangs, state.gang_wait) == ({"Running": 2}, 30.0) and state.is_alive
    alone = _live(queue, lease=None).state()
    assert (alone.leader, alone.is_leader) == (None, True)


def test_a_dry_run_leads_nobody_and_goes_round_all_the_same(queue: SchedulingQueue) -> None:
    tried = _live(queue, lease=None, is_dry_run=True)
    assert not tried.state().is_leader and tried.state().is_alive
    assert not replace(tried, since_cycle=lambda: 61.0).state().is_alive
    (leader,) = [one for one in SchedulingGauges(tried.state).collect() if one.name == "forecast_leader"]
    assert [sample.value for sample in leader.samples] == [0.0]


def test_a_loop_is_dead_only_where_it_has_to_go_round(queue: SchedulingQueue) -> None:
    assert not _live(queue, since_cycle=lambda: 61.0).state().is_alive
    assert _live(queue, since_cycle=lambda: None).state().is_alive  # it has not begun
    waits = replace(LEADS, is_leader=False, holder="replica-2")
    assert _live(queue, since_cycle=lambda: 500.0, lease=lambda: waits).state().is_alive
