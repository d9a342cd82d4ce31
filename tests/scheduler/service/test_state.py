from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kube.leader_election.lease import LeaseStatus
from kube.objects.objects import PodInfo
from placement.status import SUCCESS, Code, Status
from scheduler.loop_settings import QueueOptions
from scheduler.queue.active import PrioritySort
from scheduler.queue.queued_pods import UnitOf
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.scheduling_answers import moment
from scheduler.scheduling_metrics import SchedulingGauges
from scheduler.service.live_answers import LiveScheduling
from testing.app_client import AppClient
from tests.placement.small_cluster import pod_of
from tests.scheduler.service.simple_scheduling import SimpleScheduling, queued
from tests.scorer.service.fake_scorer import FakeScorer


def test_it_is_alive_while_the_loop_goes_round(client: AppClient, scheduling: SimpleScheduling) -> None:
    assert client.get("/healthz").json() == {"ok": True}
    scheduling.change(is_alive=False, since_cycle=95.2)
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert "has not gone round for 95 s: restart this process" in answer.json()["error"]


def test_it_is_ready_once_the_cluster_was_read(client: AppClient, scorer: FakeScorer) -> None:
    scorer.ready = False
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "pods have not been listed yet" in answer.json()["error"]
    status = client.get("/v1/status").json()
    assert status["ready"] is False and "pods have not been listed yet" in status["not_ready_because"]
    scorer.ready = True
    assert client.get("/readyz").status_code == 200
    scorer.ready = False  # stale tables are the degradation ladder's matter
    assert client.get("/readyz").status_code == 200


def test_what_only_the_loops_read_has_to_be_there_too(client: AppClient, scheduling: SimpleScheduling) -> None:
    scheduling.change(waits_for="poddisruptionbudgets have not been listed: 403")
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "poddisruptionbudgets have not been listed: 403" in answer.json()["error"]
    assert client.get("/v1/status").json()["ready"] is False


def test_a_replica_that_waits_for_the_lease_is_ready(client: AppClient, scheduling: SimpleScheduling) -> None:
    scheduling.change(is_leader=False, leader="replica-2")
    assert client.get("/readyz").status_code == 200
    scheduling.change(election_error="leases.coordination.k8s.io is forbidden (403)")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"] == ("this replica could not take over: leases.coordination.k8s.io is forbidden (403)")
    scheduling.change(is_leader=True)  # it still has it, and another try may succeed
    assert client.get("/readyz").status_code == 200


def test_it_says_so_while_it_ends(client: AppClient) -> None:
    client.app.state.service.draining = True
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "shutting down" in answer.json()["error"]
    assert client.get("/healthz").status_code == 200
    assert client.get("/v1/status").json()["ready"] is False


def test_the_status_is_that_of_the_scorer_and_of_the_loops(client: AppClient) -> None:
    status = client.get("/v1/status").json()
    assert status["ready"] is True and status["not_ready_because"] is None
    assert (status["level"], status["pods"]) == (0, 612)
    assert status["scheduling"] == {
        "alive": True,
        "dry_run": False,
        "leading": True,
        "leader": "replica-1",
        "election_error": None,
        "waits_for": None,
        "gang_wait_seconds": 90.0,
        "profiles": {"online": "forecast-scheduler"},
        "pending": {"active": 1, "backoff": 0, "unschedulable": 2, "gated": 0},
        "bindings_in_flight": 4,
        "assumed_pods": 6,
        "gangs": {"Pending": 1},
        "loop_age_seconds": 0.25,
    }


def _names(client: AppClient, query: str = "") -> list[str]:
    return [pod["name"] for pod in client.get(f"/v1/queue{query}").raise_for_status().json()["pods"]]


def test_a_waiting_pod_says_why_it_waits(client: AppClient) -> None:
    answer = client.get("/v1/queue?limit=1").json()
    assert answer["pods"] == [
        {
            "namespace": "shop",
            "name": "cart-2",
            "uid": "uid-cart-2",
            "profile": "forecast-scheduler",
            "part": "unschedulable",
            "queue": "teams/search",
            "priority": 100,
            "since": "2026-02-02T02:40:00Z",
            "attempts": 3,
            "rejected_by": ["Domain", "NodeResourcesFit"],
            "message": "0/2 nodes are available: 2 Insufficient cpu.",
        }
    ]
    assert answer["total"] == 3
    assert answer["pending"] == {"active": 1, "backoff": 0, "unschedulable": 2, "gated": 0}


def test_an_answer_is_bounded(client: AppClient, scheduling: SimpleScheduling) -> None:
    scheduling.pods = [queued(f"p-{number:05d}", since=moment(number)) for number in reversed(range(5000))]
    assert _names(client) == [f"p-{number:05d}" for number in range(100)]
    answer = client.get("/v1/queue?limit=1000").json()
    assert (len(answer["pods"]), answer["total"]) == (1000, 5000)


def test_a_part_that_is_none_is_refused_and_those_there_are_named(client: AppClient) -> None:
    answer = client.get("/v1/queue?part=unschedulble")
    assert answer.status_code == 422
    assert "'active', 'backoff', 'unschedulable', 'gated' or 'in_flight'" in answer.json()["error"]
    assert client.get("/v1/queue?part=in_flight").status_code == 200
    assert client.get("/v1/queue?part=nowhere").status_code == 422


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
