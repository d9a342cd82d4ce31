"""The extender on a small cluster: filters, points, the charge, advice, shadow mode."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from base.errors import ForecastError
from extender.answer_settings import AnswerOptions
from extender.extender import Extender
from extender.extender_api import VictimsByUid
from extender.extender_options import ExtenderOptions
from extender.score_sources import LocalScores
from forecast.service_key import ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.constraints import HostPort, LabelSelector, Operator, Requirement
from kube.objects.objects import PodInfo
from placement.decisions.decision import Advice
from placement.decisions.recorder import DecisionRecorder
from placement.filters.domain import DOMAIN_LABEL, Domain
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.node_ports import NodePorts
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.index.pods_by_labels import PodGroups
from placement.node_order import ORDER_POINTS
from placement.policies.policy import OnePolicyForAll
from placement.policies.pool_order import PoolOrder
from placement.reservations.watched_plans import KeptTarget, PlanReservations
from scorer.scorer_api import Scored
from scorer.scoring_policy import ScoringPolicy, scoring_policy
from testing.constants import with_constants
from tests.scorer.live_cluster import node, pod_of
from tests.scorer.scorer_at import LiveScorer, shares

NODES = ["node-0", "node-1", "node-2", "node-3"]
LOADED = [pod_of(n % 6, f"p{n}", "node-0" if n < 30 else f"node-{1 + n % 2}", cpu=1.0) for n in range(50)]


class Said:
    """A recorder that remembers."""

    def __init__(self) -> None:
        self.advice: list[Advice] = []
        self.bindings: list[tuple[str, str]] = []

    def advised(self, advice: Advice) -> None:
        self.advice.append(advice)

    def bound(self, pod: PodInfo) -> Advice | None:
        self.bindings.append((pod.name, pod.node))
        return next((one for one in reversed(self.advice) if one.uid == pod.uid), None)


class Rejects(PlainFilter):
    name = "Rejects"

    def __init__(self, *rejections: tuple[Sequence[bool], str, bool]) -> None:
        self.rejections = rejections

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return [Rejection(np.array(nodes), reason, preemptible) for nodes, reason, preemptible in self.rejections]


class AtOnce(Extender):
    """Puts nothing off, so that a test sees what a reply leads to."""

    def prioritize(self, pod: PodInfo, nodes: Sequence[str], *, due: float = math.inf) -> Mapping[str, int]:
        reply = super().prioritize(pod, nodes, due=due)
        self.settle()
        return reply


def extender_of(tested: LiveScorer, **options: Any) -> tuple[Extender, Said]:
    said = Said()
    of_answers = {*AnswerOptions.model_fields, "score_per_point", "longest_reply", "charge"}
    answers = with_constants(AnswerOptions(), **{name: options.pop(name) for name in of_answers & options.keys()})
    made = AtOnce(
        tested.scorer,
        ExtenderOptions(**options, answers=answers),
        recorder=said,  # type: ignore[arg-type]
        clock=tested.clock,
    )
    return made, said


def test_the_lowest_peak_gets_most_points_unless_a_node_is_kept() -> None:
    made, said = extender_of(LiveScorer(pods=LOADED))
    points = made.prioritize(pod_of(0, "new"), NODES)
    assert points["node-3"] == max(points.values()) > 0
    assert points["node-0"] == min(points.values()) < 0
    (advice,) = said.advice
    assert (advice.best, advice.is_shadow, advice.is_late) == ("node-3", False, False)
    assert advice.runner_up in ("node-1", "node-2")
    assert advice.margin == points["node-3"] - points.get(advice.runner_up, 0)
    peak = advice.peak()
    assert peak is not None and peak.share is not None
    assert 0 < peak.share < 1
    assert advice.service == "shop/Deployment/service-0"
    tested = LiveScorer(pods=LOADED)
    made, _ = extender_of(tested)
    kept = KeptTarget("uid-moving", ServiceKey("shop", "Deployment", "service-0"), "node-0", tested.clock() + 60)
    made.rules.reserved.plans.put(PlanReservations("p", (kept,)))
    points = made.prioritize(pod_of(0, "new"), NODES)
    assert points["node-0"] == max(points.values()) > ORDER_POINTS / 2
    assert made.prioritize(pod_of(1, "another"), NODES).get("node-0", 0) < ORDER_POINTS / 2


def test_a_node_nobody_knows_gets_no_points_and_is_not_advised() -> None:
    made, said = extender_of(LiveScorer(pods=LOADED))
    assert "stranger" not in made.prioritize(pod_of(0, "new"), ["stranger", *NODES])
    assert said.advice[0].best == "node-3"
    assert made.prioritize(pod_of(0, "new"), ["stranger", "another"]) == {}
    assert said.advice[1].best is None


def test_pods_that_follow_each_other_before_any_binding_is_seen_are_spread() -> None:
    tested = LiveScorer()
    made, said = extender_of(tested)
    for n in range(8):
        made.prioritize(pod_of(0, f"new-{n}"), NODES)
    advised = [str(advice.best) for advice in said.advice]
    assert sorted(advised) == sorted(NODES * 2)
    without, said = extender_of(LiveScorer(), charge=0.0)
    for n in range(4):
        without.prioritize(pod_of(0, f"new-{n}"), NODES)
    assert len({advice.best for advice in said.advice}) == 1


def test_a_shadow_answers_neutrally_and_goes_on_from_its_advice() -> None:
    tested = LiveScorer(pods=LOADED)
    made, said = extender_of(tested, shadow=True, filters=(Rejects(([True] * 4, "no", False)),))
    assert made.filter(pod_of(0, "new"), NODES).nodes == NODES
    assert made.prioritize(pod_of(0, "new"), NODES) == {}
    assert said.advice[0].best == "node-3"
    assert said.advice[0].is_shadow
    victims = {"node-0": VictimsByUid(("u",))}
    assert made.preempt(pod_of(0, "new"), victims) == victims
    tested = LiveScorer(sizes=(4.0, 4.0, 4.0, 4.0))  # a pod is more than a point of them
    made, said = extender_of(tested, shadow=True)
    for n in range(8):
        waiting = pod_of(0, f"new-{n}")
        tested.put(waiting)
        made.prioritize(waiting, NODES)
        tested.put(replace(waiting, node="node-0"))  # kube-scheduler has its own ideas
        tested.later(3)
    assert sorted(str(advice.best) for advice in said.advice) == sorted(NODES * 2)
    assert tested.scorer.self_check().sound


def test_a_reply_that_came_too_late_charges_nobody_and_says_so() -> None:
    tested, times = LiveScorer(pods=LOADED), [10.0]
    before = shares(tested).copy()
    said = Said()
    made = AtOnce(tested.scorer, recorder=said, stopwatch=lambda: times[0])  # type: ignore[arg-type]
    made.prioritize(pod_of(0, "late"), NODES, due=9.9)
    assert said.advice[0].is_late
    np.testing.assert_array_equal(shares(tested), before)
    made.prioritize(pod_of(0, "in time"), NODES, due=10.1)
    assert not said.advice[1].is_late
    assert (shares(tested) != before).any()


def test_nodes_are_rejected_for_what_counts_most_and_kept_where_eviction_helps() -> None:
    first = ([True, True, False, False], "full", True)
    second = ([False, True, True, False], "another domain", False)
    made, _ = extender_of(LiveScorer(), filters=(Rejects(first), Rejects(second)))
    filtered = made.filter(pod_of(0, "new"), ["node-3", "stranger", "node-2", "node-1", "node-0"])
    assert filtered.nodes == ["node-3", "stranger"]
    assert filtered.failed == {"node-0": "full"}
    assert filtered.unresolvable == {"node-1": "another domain", "node-2": "another domain"}
    full = ([True, False, False, False], "full", True)
    other = ([False, True, False, False], "another domain", False)
    made, _ = extender_of(LiveScorer(), filters=(Rejects(full), Rejects(other)))
    victims = {
        "node-0": VictimsByUid(("a",)),
        "node-1": VictimsByUid(("b",)),
        "node-2": VictimsByUid(()),
        "node-9": VictimsByUid(("c",), 1),
    }
    assert made.preempt(pod_of(0, "new"), victims) == {
        "node-0": VictimsByUid(("a",)),
        "node-9": VictimsByUid(("c",), 1),
    }


def test_pools_come_in_their_order_by_points_as_far_as_nodes_are_asked_for() -> None:
    tested = LiveScorer(pods=LOADED)
    for name, pool in (("node-0", "a"), ("node-3", "b")):
        tested.scorer.tables.put(Kind.NODES, replace(node(name), labels={"pool": pool}))
    pools = PoolOrder([LabelSelector((Requirement("pool", Operator.IN, (pool,)),)) for pool in "ab"])
    plain = ExtenderOptions().policy(scoring_policy(tested.scorer.options))
    made = AtOnce(tested.scorer, policies=OnePolicyForAll(replace(plain, pools=pools)), clock=tested.clock)
    points = dict.fromkeys(NODES, 0) | dict(made.prioritize(pod_of(0, "new"), NODES))
    assert sorted(NODES, key=lambda name: -points[name])[:2] == ["node-0", "node-3"]  # node-0 is the fullest
    assert points["node-0"] - points["node-3"] > 90_000 < points["node-3"] - points["node-1"]
    left = dict.fromkeys(NODES[1:], 0) | dict(made.prioritize(pod_of(0, "other"), NODES[1:]))
    assert max(left, key=left.__getitem__) == "node-3"
    opted_out = pod_of(0, "out", annotations={"forecast-scheduler.io/opt-out": "true"})
    assert made.prioritize(opted_out, NODES) == {}


def test_without_a_model_kube_scheduler_weighs_requests_itself_and_only_full_nodes_are_avoided() -> None:
    tested = LiveScorer(pods=LOADED, without_model=True)
    made, said = extender_of(tested)
    assert made.prioritize(pod_of(0, "new"), NODES) == {}
    tested.measure({"node-0": 10.0, "node-1": 10.0, "node-2": 41.0, "node-3": 10.0})
    points = made.prioritize(pod_of(0, "other"), NODES)  # node-0 is full of pods that no metric has seen
    assert points["node-1"] == points["node-3"] == points["node-0"] + 100 == points["node-2"] + 100
    assert said.advice[0].model_version is None
    assert said.advice[0].peak() is None
    assert said.advice[0].level == "requests"


def test_a_score_source_that_fails_is_not_hidden() -> None:
    class Down:
        def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
            raise ForecastError("the scorer is down")

        def charge(self, pod: PodInfo, node: str, seconds: float) -> None:
            raise AssertionError

    made = Extender(LiveScorer().scorer, scores=Down())
    with pytest.raises(ForecastError, match="down"):
        made.prioritize(pod_of(0, "new"), NODES)


def test_the_charge_is_put_off_until_the_reply_is_out_but_not_past_the_next_pod() -> None:
    tested, said = LiveScorer(), Said()
    before = shares(tested).copy()
    made = Extender(tested.scorer, recorder=said, clock=tested.clock)  # type: ignore[arg-type]
    made.prioritize(pod_of(0, "first"), NODES)
    np.testing.assert_array_equal(shares(tested), before)
    assert not said.advice
    made.prioritize(pod_of(0, "second"), NODES)
    assert [advice.pod for advice in said.advice] == ["shop/first"]
    made.settle()
    made.settle()
    assert len({advice.best for advice in said.advice}) == len(said.advice) == 2


def test_scores_made_ahead_are_used_once_for_that_pod_on_those_nodes() -> None:
    asked: list[str] = []

    class Counting(LocalScores):
        def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
            asked.append(pod.name)
            return super().score(pod, nodes, policy)

    tested, times = LiveScorer(pods=LOADED), [0.0]
    made = Extender(tested.scorer, scores=Counting(tested.scorer), stopwatch=lambda: times[0])
    first = made.prioritize(pod_of(0, "a"), NODES)
    made.prepare(pod_of(0, "b"), NODES)
    assert asked == ["a", "b"]
    made.prioritize(pod_of(0, "b"), NODES)
    assert asked == ["a", "b"]
    made.prioritize(pod_of(0, "b"), NODES)
    made.prepare(pod_of(0, "c"), NODES)
    made.prioritize(pod_of(0, "c"), NODES[:2])
    made.prepare(pod_of(0, "d"), NODES)
    times[0] += 1.0
    made.prioritize(pod_of(0, "d"), NODES)
    made.prepare(pod_of(0, "e"), NODES[:1])
    assert asked == ["a", "b", "b", "c", "c", "d", "d"]
    assert first


def test_a_pod_asked_about_again_does_not_count_against_itself() -> None:
    tested = LiveScorer()
    made, _ = extender_of(tested, filters=(NodeResourcesFit(),))
    large = pod_of(0, "large", cpu=30.0)
    tested.put(large)
    made.prioritize(large, NODES)
    assert made.filter(large, NODES).nodes == NODES
    made.prioritize(large, NODES)
    assert len(made.filter(pod_of(0, "another", cpu=30.0), NODES).nodes) == 3


def test_a_binding_seen_before_its_advice_is_believed_by_the_shadow_and_counted_once() -> None:
    tested = LiveScorer(sizes=(4.0, 4.0, 4.0, 4.0), pods=[pod_of(1, "old", "node-0")])
    recorder = DecisionRecorder((), version="1", clock=tested.clock)
    shadow = Extender(
        tested.scorer, ExtenderOptions(answers=AnswerOptions(shadow=True)), recorder=recorder, clock=tested.clock
    )
    waiting = replace(pod_of(0, "quick"), created=tested.clock.now)
    tested.put(waiting)
    shadow.prioritize(waiting, NODES)
    tested.put(replace(waiting, node="node-0"))
    shadow.settle()
    with tested.scorer.tables.reading() as cluster:
        assert cluster.predicted is not None
        assert cluster.predicted.placed[waiting.uid].shadow is not None
    assert shadow.charges == (0, 0)
    assert recorder.figures().elsewhere == 1
    assert tested.scorer.self_check().sound


def test_asking_about_pods_that_do_not_exist_leaves_the_tables_as_they_are() -> None:
    tested = LiveScorer(pods=LOADED)
    made, _ = extender_of(tested)
    with tested.scorer.tables.reading() as cluster:
        kinds = len(cluster.state.kinds)
    odd = replace(pod_of(0, "odd"), requests={"cpu": 1.0, **{f"made.up/{n}": 1.0 for n in range(500)}})
    made.prioritize(odd, NODES)
    double = replace(LOADED[0], uid="another", node="", created=LOADED[0].created + 100)
    made.prioritize(double, NODES)
    with tested.scorer.tables.reading() as cluster:
        assert len(cluster.state.kinds) == kinds
        assert cluster.state.pods[LOADED[0].uid] == LOADED[0]
    tested.later(3)
    assert tested.scorer.self_check().sound
    made.prioritize(pod_of(0, "x"), [])
    empty, _ = extender_of(LiveScorer(sizes=()), filters=(Domain(),))
    assert empty.prioritize(pod_of(0, "x"), NODES) == {}
    assert empty.filter(pod_of(0, "x"), NODES).nodes == NODES


def test_what_fails_after_a_reply_does_not_harm_the_next_pod() -> None:
    class Forgetful(Said):
        def advised(self, advice: Advice) -> None:
            raise RuntimeError("no memory")

    made = Extender(LiveScorer(pods=LOADED).scorer, recorder=Forgetful())  # type: ignore[arg-type]
    assert made.prioritize(pod_of(0, "a"), NODES)
    assert made.prioritize(pod_of(0, "b"), NODES)


def test_an_index_that_could_not_follow_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = LiveScorer()
    made, _ = extender_of(tested, filters=(NodePorts(),))
    port = replace(pod_of(0, "ported"), host_ports=(HostPort("0.0.0.0", "TCP", 80),))
    monkeypatch.setattr(PodGroups, "count", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tested.put(replace(port, node="node-0"))
    monkeypatch.undo()
    tested.later(1)
    another = replace(port, uid="another", name="another")
    assert made.filter(another, NODES).nodes == NODES[1:]
    tested.delete(replace(port, node="node-0"))
    assert made.filter(another, NODES).nodes == NODES


@pytest.mark.parametrize(("node", "right", "wrong"), [("node-3", 1, 0), ("node-0", 0, 1)])
def test_it_is_counted_whether_the_node_that_was_charged_was_taken(node: str, right: int, wrong: int) -> None:
    tested = LiveScorer(pods=LOADED)
    made, said = extender_of(tested)
    waiting = pod_of(0, "new")
    tested.put(waiting)
    made.prioritize(waiting, NODES)
    tested.put(replace(waiting, node=node))
    assert made.charges == (right, wrong)
    assert said.bindings == [("new", node)]
    tested.put(replace(waiting, node=node, priority=1))
    assert made.charges == (right, wrong)
    tested.scorer.tables.replace(Kind.PODS, LOADED)
    another = pod_of(0, "listed")
    tested.put(another)
    made.prioritize(another, NODES)
    tested.scorer.tables.replace(Kind.PODS, [*LOADED, replace(another, node=node)])
    assert made.charges == (2 * right, 2 * wrong)
    assert tested.scorer.self_check().sound


def test_a_scorer_elsewhere_that_hangs_does_not_hold_up_filters() -> None:
    hangs, go_on = threading.Event(), threading.Event()

    class Hanging(LocalScores):
        def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
            hangs.set()
            go_on.wait(30)
            return super().score(pod, nodes, policy)

    tested = LiveScorer()
    tested.scorer.tables.put(Kind.NODES, replace(node("node-1"), labels={DOMAIN_LABEL: "gpu"}))
    made = Extender(tested.scorer, ExtenderOptions(filters=(Domain(),)), scores=Hanging(tested.scorer))
    busy = threading.Thread(target=made.prepare, args=(pod_of(0, "a"), NODES))
    busy.start()
    assert hangs.wait(30)
    assert made.filter(pod_of(0, "b"), NODES).nodes == ["node-0", "node-2", "node-3"]
    assert not go_on.is_set()
    go_on.set()
    busy.join(30)


def test_pods_that_others_assume_at_once_are_not_taken_for_bound() -> None:
    waiting = [replace(pod_of(0, f"new-{n}"), node="") for n in range(4)]
    tested = LiveScorer(pods=[*LOADED, *waiting])
    _, said = extender_of(tested)
    with tested.scorer.tables.reading() as cluster:
        cluster.assume_all(waiting, [3, 3, 2, 3], tested.clock.now + 60)
        assert len(cluster.assumed) == 4
    assert said.bindings == []
    tested.put(pod_of(0, "hand-placed", "node-3"))
    assert said.bindings == [("hand-placed", "node-3")]
