"""Nominations of an advisor that is gone are withdrawn once they are in vain, and no other."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from advisor.advice_requests import advice_note
from advisor.stale_nominations import StaleNominations
from cluster.assuming_cluster import AssumingCluster
from kube.client.api_answer import ApiAnswer, answered
from kube.client.pod_writes import MERGE
from kube.objects.objects import PodInfo
from placement.gate_exemptions import ADVICE
from scorer.options import ScorerOptions
from testing.objects import pod_info
from testing.settable_clock import SettableClock
from tests.advisor.made_up import OTHER_GATE, Asked, Session, gated, pod_answer, scheduled_is
from tests.placement.decisions.made_up import advice

SECONDS = 10.0
PATH = "/api/v1/namespaces/shop/pods/a"
TRIED = scheduled_is("False", "Unschedulable")
GATED = scheduled_is("False", "SchedulingGated")
NOTE = advice_note(advice({"n1": 1, "n2": 0}))
POD = pod_info("a", uid="uid-a", annotations={ADVICE: NOTE}, nominated_node="n1", priority=5)
WITHDRAWAL = Asked(
    "PATCH",
    f"{PATH}/status",
    {"metadata": {"uid": "uid-a", "resourceVersion": "7"}, "status": {"nominatedNodeName": None}},
    MERGE,
)


class Scene:
    """A leader that finds pods of a former one."""

    def __init__(self, *pods: PodInfo, answers: tuple[ApiAnswer, ...] = ()) -> None:
        self.clock, self.session, self.leads, self.withdrawn = SettableClock(0.0), Session(*answers), True, 0
        self.cluster = AssumingCluster(ScorerOptions(), now=0.0)
        self.stale = StaleNominations(
            self.cluster,
            self.session,
            reading=nullcontext,
            leads=lambda: self.leads,
            seconds=SECONDS,
            withdrawn=self._count,
            clock=self.clock,
        )
        self.cluster.listeners.append(self.stale.apply)
        for pod in pods:
            self.cluster.put_pod(pod)

    def _count(self) -> None:
        self.withdrawn += 1

    def keep_up(self, *, later: float = SECONDS) -> list[Asked]:
        """Requests that were made."""
        self.clock.now += later
        before = len(self.session.asked)
        self.stale.keep_up()
        return self.session.asked[before:]


def test_a_nomination_of_a_former_leader_is_withdrawn_when_it_is_in_vain() -> None:
    scene = Scene(POD, answers=(pod_answer(POD), pod_answer(POD, **TRIED)))
    assert scene.keep_up(later=SECONDS - 1) == []
    assert [one.method for one in scene.keep_up(later=1)] == ["GET"], "kube-scheduler has not tried it yet"
    assert scene.keep_up(later=SECONDS - 1) == []
    assert scene.keep_up(later=1)[1:] == [WITHDRAWAL] and scene.withdrawn == 1
    scene.cluster.put_pod(replace(POD, nominated_node=""))
    assert scene.keep_up() == []
    scene.cluster.put_pod(POD)
    scene.leads = False
    assert scene.keep_up() == []
    scene.leads = True
    scene.stale.rebuild()
    assert scene.keep_up()


def test_one_that_our_gate_still_holds_is_withdrawn_too() -> None:
    """From 1.37 on it holds room (kubernetes#139057): it was nominated, and its release never came."""
    pod = gated("a", nominated_node="n1")
    scene = Scene(pod, gated("b", OTHER_GATE, nominated_node="n1"), answers=(pod_answer(pod, **GATED),))
    assert scene.keep_up()[1:] == [WITHDRAWAL]


@pytest.mark.parametrize(
    "pod",
    [
        replace(POD, annotations={}),
        replace(POD, annotations={ADVICE: "{"}),
        replace(POD, annotations={ADVICE: "[" * 100_000}),
        replace(POD, annotations={ADVICE: '{"node": 7}'}),
        replace(POD, annotations={ADVICE: advice_note(advice({"n1": 1}), mode="prefer")}),
        replace(POD, nominated_node="n2"),
        replace(POD, nominated_node=""),
        replace(POD, node="n1"),
        replace(POD, terminating=True),
    ],
    ids=["no note", "no JSON", "nested", "no name", "it preferred", "of kube-scheduler", "none", "bound", "ending"],
)
def test_others_are_left_alone(pod: PodInfo) -> None:
    assert Scene(pod).keep_up() == []


@pytest.mark.parametrize("priority", [4, 5])
def test_one_stays_while_kube_scheduler_may_be_making_room(priority: int) -> None:
    victim = pod_info("victim", uid="victim", node="n1", terminating=True, priority=priority)
    scene = Scene(POD, victim, answers=(pod_answer(POD, **TRIED),))
    assert bool(scene.keep_up()) is (priority == 5), "kube-scheduler evicts pods of lower priority only"


@pytest.mark.parametrize(
    "answer",
    [
        pod_answer(replace(POD, node="n1"), **TRIED),
        pod_answer(replace(POD, nominated_node="n3"), **TRIED),
        pod_answer(replace(POD, nominated_node=""), **TRIED),
        answered(404, b"{}"),
        answered(503, b""),
        answered(200, b"{"),
    ],
)
def test_nothing_is_written_if_the_pod_is_another_by_now(answer: ApiAnswer) -> None:
    scene = Scene(POD, answers=(answer,))
    assert [one.method for one in scene.keep_up()] == ["GET"] and scene.withdrawn == 0


def test_of_many_some_are_looked_at_at_once_each_in_its_turn() -> None:
    scene = Scene(*(replace(POD, uid=f"uid-{i}", name=f"p-{i}") for i in range(40)))
    scene.session.answers = [answered(503, b"")] * 80
    assert [len(scene.keep_up(later=later)) for later in (SECONDS, 1, 1)] == [32, 8, 0]
    scene.session.is_over = True
    assert scene.keep_up() == []
