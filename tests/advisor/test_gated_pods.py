"""Pods that our gate alone holds: since when, and who removes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from advisor.pods_waiting_for_advice import GatedPods
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo, PodPhase
from placement.gate_exemptions import ADVICE
from scorer.scorer import Scorer
from testing.settable_clock import SettableClock
from tests.advisor.made_up import OTHER_GATE, gated, scheduled_is
from tests.placement.small_cluster import node_of

POD = gated("a")


class World:
    """A node, the pods that are seen, and the time of this process."""

    def __init__(self, *pods: PodInfo) -> None:
        self.clock = SettableClock(100.0)
        self.tables = Scorer(clock=lambda: 0.0).tables
        with self.tables.reading() as cluster:
            self.cluster = cluster
            self.gated = GatedPods(cluster, clock=self.clock)
        self.tables.attach((), self.gated)
        self.tables.replace(Kind.NODES, [node_of("n1"), node_of("n2")])
        self.see(*pods)

    def see(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.tables.put(Kind.PODS, pod)

    def later(self, seconds: float) -> None:
        self.clock.now += seconds

    def held(self, seconds: float = 0.0) -> list[str]:
        return [pod.name for pod in self.gated.held_for(seconds)]


@pytest.mark.parametrize(
    "pod",
    [
        replace(POD, gates=()),
        replace(POD, gates=(OTHER_GATE,)),
        replace(POD, gates=(OTHER_GATE, ADVICE)),
        replace(POD, gates=(ADVICE, OTHER_GATE)),
        replace(POD, terminating=True),
        replace(POD, phase=PodPhase.FAILED),
    ],
)
def test_others_are_not(pod: PodInfo) -> None:
    world = World(pod)
    world.later(60)
    assert world.held() == [] and len(world.gated) == 0
    assert not world.gated.claim(pod.uid)


def test_a_pod_is_held_since_it_was_seen_or_its_last_other_gate_went() -> None:
    world = World(POD)
    assert world.held() == ["a"] and world.held(0.1) == []
    world.later(2.0)
    world.see(replace(POD, labels={"new": "label"}))
    assert world.held(2.0) == ["a"] and world.held(2.1) == [], "a change does not start its time anew"
    (pod,) = world.gated.held_for(0.0)
    assert pod.labels == {"new": "label"}
    world = World(POD)
    for gates in ((OTHER_GATE, "b", ADVICE), ("b", ADVICE)):
        world.later(60)
        world.see(replace(POD, gates=gates))
        assert len(world.gated) == 0
    world.see(POD)
    assert world.held() == ["a"] and world.held(0.1) == []
    world.later(2.0)
    assert world.held(2.0) == ["a"]


@pytest.mark.parametrize("changes", [{"gates": ()}, {"terminating": True}, {"node": "n1"}, None], ids=str)
def test_whoever_is_held_no_more_is_forgotten(changes: dict[str, Any] | None) -> None:
    world = World(POD, gated("b"))
    if changes is None:
        world.tables.delete(Kind.PODS, POD)
    else:
        world.see(replace(POD, **changes))
    assert world.held() == ["b"] and not world.gated.claim("uid-a")


@pytest.mark.parametrize("at_once", [True, False])
def test_a_pod_that_is_assumed_on_a_node_is_held_until_the_watch_shows_its_gate_gone(at_once: bool) -> None:
    world = World(POD, gated("b"))
    world.later(1.0)
    with world.tables.changing() as cluster:
        if at_once:
            row = cluster.state.row_of["n1"]
            cluster.assume_all([POD, gated("b")], [row, row], 60.0)
        else:
            cluster.assume(POD, "n1", 60.0)
    world.later(1.0)
    assert world.held(2.0) == ["a", "b"], "its time goes on"
    world.see(replace(POD, gates=()))
    assert world.held() == ["b"]
    with world.tables.changing() as cluster:
        cluster.forget("uid-a")
        cluster.forget("uid-b")
    assert world.held(2.0) == ["b"]


def test_one_claims_a_pod_until_its_release_turns_out_to_be_in_vain() -> None:
    world = World(POD)
    assert world.gated.claim("uid-a") and not world.gated.claim("uid-a")
    assert world.held() == []
    world.gated.released("uid-a", is_gone=False)
    assert world.held() == ["a"] and world.gated.claim("uid-a")
    assert not world.gated.claim("nobody")
    world = World(POD)
    world.gated.claim("uid-a")
    world.gated.released("uid-a", is_gone=True)
    world.later(300.0)
    assert world.held() == [] and not world.gated.claim("uid-a")
    world.later(0.5)
    assert world.held() == ["a"] and world.gated.claim("uid-a")
    world = World(POD)
    world.gated.claim("uid-a")
    world.gated.released("uid-a", is_gone=True)
    world.see(replace(POD, labels={"new": "label"}))
    assert world.held() == []
    world.gated.lost("uid-a")
    (pod,) = world.gated.held_for(0.0)
    assert pod.labels == {"new": "label"} and world.gated.claim("uid-a")


def test_a_release_that_the_watch_has_shown_is_not_doubted_however_long_nobody_tries_the_pod() -> None:
    world = World(POD)
    world.gated.claim("uid-a")
    world.gated.released("uid-a", is_gone=True)
    assert world.gated.is_echo(RELEASED)
    world.later(1000.0)
    assert world.held() == []


def event(
    kind: str = "MODIFIED",
    gates: Sequence[str] = (ADVICE,),
    node: str | None = None,
    reason: str | None = "SchedulingGated",
    **metadata: object,
) -> bytes:
    """An event of a held pod, as the API server writes it."""
    pod: dict[str, Any] = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "shop", "uid": "uid-a", "resourceVersion": "7"} | metadata,
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Pending", "nominatedNodeName": "n1"},
    }
    pod["status"] |= scheduled_is("False", reason)
    if gates:
        pod["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    return msgspec.json.encode({"type": kind, "object": pod})


NOMINATED, RELEASED = event(), event(gates=[])


def test_what_we_write_comes_back_as_an_echo() -> None:
    world = World(POD)
    assert not world.gated.is_echo(NOMINATED), "somebody else may have nominated it"
    world.gated.claim("uid-a")
    assert world.gated.is_echo(NOMINATED)
    assert not world.gated.is_echo(RELEASED), "without an answer this is how its release is known"
    world.gated.released("uid-a", is_gone=True)
    assert world.gated.is_echo(NOMINATED) and world.gated.is_echo(RELEASED)
    world.see(replace(POD, gates=(), node="n1"))
    assert not world.gated.is_echo(RELEASED), "it is bound"


@pytest.mark.parametrize(
    "line",
    [
        event("ADDED"),
        event("DELETED"),
        event(uid="uid-b"),
        event(gates=[], node="n1", reason=None),
        event(gates=[], reason="Unschedulable"),
        event(deletionTimestamp="2026-11-27T10:00:00Z"),
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}',
        b"",
    ],
)
def test_news_is_no_echo(line: bytes) -> None:
    world = World(POD)
    world.gated.claim("uid-a")
    world.gated.released("uid-a", is_gone=True)
    assert not world.gated.is_echo(line)


def test_who_has_been_held_longest() -> None:
    world = World()
    assert world.gated.longest() == 0.0
    world.see(POD)
    world.later(3.0)
    world.see(gated("b"))
    world.later(1.0)
    assert world.gated.longest() == 4.0 and len(world.gated) == 2
    world.gated.claim("uid-a")
    assert world.gated.longest() == 4.0, "a claim removes no gate"
    world.gated.released("uid-a", is_gone=True)
    assert world.gated.longest() == 1.0
    world.later(300.5)
    world.held()
    world.later(2.0)
    world.gated.claim("uid-b")
    world.gated.released("uid-b", is_gone=True)
    assert world.gated.longest() == 2.0, "its release has been in vain"


def test_after_tables_were_made_anew_all_pods_are_looked_at() -> None:
    world = World(POD, gated("b"))
    world.later(2.0)
    state = world.cluster.state
    state.put_pod(replace(POD, gates=()))  # as if these had not been followed
    state.put_pod(gated("c"))
    state.put_pod(gated("d", OTHER_GATE))
    assert world.held() == ["a", "b"]
    world.gated.rebuild()
    assert sorted(world.held()) == ["b", "c"] and world.held(2.0) == ["b"]


def test_who_goes_on_after_a_look_or_a_deletion_changes_nothing() -> None:
    world = World(POD)
    world.gated.claim("uid-a")
    world.gated.lost("uid-a")
    assert world.held() == [] and not world.gated.claim("uid-a")
    world = World(POD)
    world.gated.claim("uid-a")
    world.tables.delete(Kind.PODS, POD)
    world.gated.released("uid-a", is_gone=True)
    assert len(world.gated) == 0
    world.see(POD)
    assert world.held() == ["a"]
