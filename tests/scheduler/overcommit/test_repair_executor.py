"""Repairs step by step, with a made-up API server: who is evicted when, and what is told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from kube.client.eviction import Evicted, Eviction
from kube.events.event_recorder import EventRecorder
from kube.objects.objects import PodInfo
from scheduler.overcommit.node_relief import RepairReport
from scheduler.overcommit.overcommit import OvercommitCause
from scheduler.overcommit.repair_loop import OvercommitCollector, OvercommitRepair, report_overcommit, report_repair
from tests.scheduler.overcommit.nodes import OURS, Scene, node, pod, unanswered

REFUSED = Eviction(Evicted.REFUSED, "The disruption budget b needs 2 healthy pods")


class Repairing(Scene):
    """A node of 4 cores, pods of one core, and who was asked to go. show: whether evicted pods terminate at once."""

    def __init__(self, *pods: PodInfo, show: bool = True) -> None:
        super().__init__([node()])
        self.asked: list[str] = []
        self.answers: dict[str, Eviction] = {}
        self.reports: list[RepairReport] = []
        self.leads, self.show = True, show
        self.repair = OvercommitRepair(
            self.watch.look, self.evict, {OURS}, may_write=lambda: self.leads, tell=self.reports.append,
            clock=lambda: self.now,
        )  # fmt: skip
        self.put(*pods)
        self.watch.look()
        self.now += 1

    def evict(self, one: PodInfo) -> Eviction:
        self.asked.append(one.name)
        answer = self.answers.get(one.name, Eviction(Evicted.GOING))
        if answer.outcome is Evicted.GOING and self.show:
            self.put(replace(one, terminating=True))
        return answer

    def step(self, seconds: float = 1.0) -> list[str]:
        """Who was asked to go in this step, so much after the one before."""
        before = len(self.asked)
        self.repair.step()
        self.now += seconds
        return self.asked[before:]


def pods(n: int, scheduler: str = OURS, name: str = "p") -> list[PodInfo]:
    return [pod(f"{name}{i}", created=float(i), scheduler=scheduler) for i in range(n)]


def test_the_newest_go_and_are_waited_for() -> None:
    tested = Repairing(*pods(6))
    assert tested.step() == ["p5", "p4"]
    assert tested.step() == [] and tested.step(100) == [] and tested.step() == []
    assert [told.pod.name for told in tested.reports if told.pod] == ["p5", "p4"]
    assert tested.repair.unrepaired == 0 and tested.repair.evictions == {Evicted.GOING: 2}


def test_nobody_else_goes_while_the_watch_lags() -> None:
    tested = Repairing(*pods(5), show=False)
    assert tested.step() == ["p4"]
    assert tested.step(28) == [] and tested.step(2) == []
    assert tested.step() == ["p4"], "it was told to go long ago, and has not"


def test_all_are_refused() -> None:
    tested = Repairing(*pods(2), *pods(3, "default-scheduler", "theirs"))
    tested.answers = {"p0": REFUSED, "p1": REFUSED}
    assert tested.step() == ["p1", "p0"]
    (told,) = tested.reports
    assert told.pod is None and told.why == (
        "our pods there that may be evicted do not give back enough: short of 1000 of cpu; 2 may not be evicted now: "
        "The disruption budget b needs 2 healthy pods"
    )
    assert tested.repair.unrepaired == 1
    pauses = [len(tested.step()) for _ in range(120)]
    assert [i + 1 for i, n in enumerate(pauses) if n] == [5, 15, 35, 75]
    assert len(tested.reports) == 1, "once is enough"
    tested.answers = {}
    assert [name for _ in range(60) for name in tested.step()] == ["p1"]
    assert tested.repair.unrepaired == 0


def test_pods_of_others_stay() -> None:
    tested = Repairing(*pods(6, "default-scheduler"))
    assert tested.step() == [] and tested.repair.unrepaired == 1 and len(tested.reports) == 1
    tested.gone(pod("p0"))
    tested.gone(pod("p1"))
    assert tested.step() == [] and tested.repair.unrepaired == 0, "nothing stands any more"


def test_without_an_answer_the_same_pod_is_asked_again() -> None:
    tested = Repairing(*pods(5))
    tested.answers = {"p4": Eviction(Evicted.UNKNOWN, "no answer")}
    assert tested.step(5) == ["p4"]
    tested.put(pod("newer", created=99.0))
    tested.answers = {}
    assert tested.step(5) == ["p4", "newer"]  # with the newer one two are too many
    assert tested.step() == []


def test_an_api_server_that_forbids_it() -> None:
    tested = Repairing(*pods(5))
    tested.answers = {f"p{i}": Eviction(Evicted.NOT_NOW, "403 forbidden") for i in range(5)}
    assert tested.step() == ["p4"] and tested.step() == []
    assert tested.repair.unrepaired == 1
    assert [told.why for told in tested.reports] == ["the API server does not evict: 403 forbidden"]


def test_nobody_goes_for_a_resize_that_is_deferred_or_a_pod_that_nobody_bound() -> None:
    tested = Repairing(*pods(4), pod("large", cpu=9, scheduler="x", set_aside={"cpu": 0.0}, owner=""))
    tested.put(unanswered("named", cpu=9, scheduler="x", owner="", bound_by_scheduler=False))
    assert [name for _ in range(60) for name in tested.step()] == []


def test_a_kubelet_has_some_seconds_to_reject_a_pod_that_was_bound() -> None:
    tested = Repairing(*pods(4), unanswered("bound", scheduler="x", owner=""))
    assert [name for _ in range(4) for name in tested.step()] == [] and tested.repair.unrepaired == 0
    tested.gone(pod("bound"))
    assert tested.step(60) == []
    tested.put(unanswered("again", scheduler="x", owner=""))
    assert [name for _ in range(9) for name in tested.step()] == ["p3"], "no kubelet is there: repaired all the same"


def test_a_replica_that_does_not_lead_counts_only() -> None:
    tested = Repairing(*pods(5))
    tested.leads = False
    assert tested.step() == [] and tested.watch.counts == {OvercommitCause.SHARED: 1}
    tested.leads = True
    assert tested.step() == ["p4"]


def test_leadership_that_is_lost_in_the_middle() -> None:
    tested = Repairing(*pods(6))

    def evict(one: PodInfo) -> Eviction:
        tested.leads = False
        return Repairing.evict(tested, one)

    tested.repair = OvercommitRepair(tested.watch.look, evict, {OURS}, may_write=lambda: tested.leads, clock=lambda: 0)
    assert tested.step() == ["p5"]


def test_metrics() -> None:
    tested = Repairing(*pods(5))
    tested.answers = {"p4": REFUSED}
    registry = CollectorRegistry()
    registry.register(OvercommitCollector(tested.watch, tested.repair))
    tested.step()
    text = generate_latest(registry).decode()
    for line in (
        'forecast_overcommits_total{cause="shared"} 1.0',
        'forecast_overcommits_total{cause="own"} 0.0',
        'forecast_overcommitted_nodes{cause="shared"} 1.0',
        "forecast_overcommits_unrepaired 0.0",
        'forecast_overcommit_evictions_total{outcome="refused"} 1.0',
        'forecast_overcommit_evictions_total{outcome="evicted"} 1.0',
    ):
        assert line in text.splitlines()


def test_events() -> None:
    posted: list[dict[str, Any]] = []

    def post(path: str, body: bytes) -> int:
        posted.append(json.loads(body))
        return 201

    tested = Repairing(*pods(5))
    tested.step()
    events = EventRecorder(post, what="nodes", instance="s-0")
    events.start()
    report_overcommit(events, tested.told[0])
    report_repair(events, tested.reports[0])
    report_repair(events, RepairReport("n", why="so"))
    events.stop()
    on_node, on_pod, unrepaired = posted
    assert on_node["metadata"]["namespace"] == "default" and on_node["type"] == "Warning"
    assert on_node["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"}
    assert on_node["note"] == (
        "pods request 1000 milli-cores of cpu more than is allocatable, placed by schedulers that share the node"
    )
    assert on_pod["regarding"]["name"] == "p4" and on_pod["reason"] == "EvictedForOvercommit"
    assert unrepaired["regarding"]["kind"] == "Node"
