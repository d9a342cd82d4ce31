"""Weights and pools of a policy in a cycle: batches go where pods go one by one, and each weight counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from base.arrays import Ints
from kube.objects.constraints import LabelSelector, Operator, Requirement
from placement.policies.policy import Policy
from placement.policies.pool_order import PoolOrder
from placement.scores.node_score import NodeScore
from placement.scores.plugin_weights import BALANCED, FIT, OURS, PLUGIN_WEIGHTS
from scheduler.cycle.placing import Looked, UnitPlacer
from scheduler.decision_advice import advice_of_cycle
from scorer.scores.score_catalogue import SCORES
from scorer.scoring_policy import ScoringPolicy
from tests.scheduler.cycle.varied_cluster import FILTERS, VariedCluster, varied_cluster

NOTHING: Mapping[str, float] = dict.fromkeys(PLUGIN_WEIGHTS, 0)

SSD = LabelSelector((Requirement("disk", Operator.IN, ("ssd",)),))
FIRST_ZONE = LabelSelector((Requirement("topology.kubernetes.io/zone", Operator.IN, ("zone-1",)),))

WEIGHTS = {
    "requests dropped": {FIT: 0, BALANCED: 0},
    "spreading dropped": {"PodTopologySpread": 0},
    "images alone": {**NOTHING, "ImageLocality": 7},
    "ours alone": {**NOTHING, OURS: 1},
    "ours dropped": {OURS: 0},
    "all others": {name: 3 + 2 * at for at, name in enumerate(PLUGIN_WEIGHTS) if name != OURS} | {OURS: 0.3},
}


def by_policy(cluster: VariedCluster, **changes: Any) -> VariedCluster:
    return replace(cluster, policy=replace(cluster.policy, **changes))


def weighed(given: Mapping[str, float]) -> Mapping[str, float]:
    return {**PLUGIN_WEIGHTS, **given}


def assert_same(seed: int, **changes: Any) -> list[str]:
    batches, single = (by_policy(varied_cluster(seed), **changes) for _ in range(2))
    together = batches.place(one_by_one=False)
    assert together == single.place(one_by_one=True)
    return together


@pytest.mark.parametrize("given", WEIGHTS.values(), ids=WEIGHTS)
def test_a_batch_is_placed_as_one_by_one_whatever_the_weights(given: Mapping[str, float]) -> None:
    assert assert_same(5, plugin_weights=weighed(given)) != varied_cluster(5).place(one_by_one=False)


@pytest.mark.long
@pytest.mark.parametrize("given", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("seed", range(20))
def test_on_many_clusters(seed: int, given: Mapping[str, float]) -> None:
    assert_same(seed, plugin_weights=weighed(given), pools=PoolOrder([SSD]) if seed % 2 else None)


@pytest.mark.parametrize("pools", [[SSD], [FIRST_ZONE, SSD]])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_a_batch_fills_pools_as_one_by_one(seed: int, pools: Sequence[LabelSelector]) -> None:
    assert_same(seed, pools=PoolOrder(pools))


def test_a_pool_has_room_while_one_of_its_nodes_passes_all_filters() -> None:
    """Every pod outside the first pool was placed when no node of it passed."""
    cluster = by_policy(varied_cluster(2, n_pods=400), pools=PoolOrder([SSD]))
    seen: list[tuple[bool, bool]] = []
    with cluster.scorer.tables.reading() as tables:
        level, _ = cluster.scorer.tables.level()
        for pod in cluster.pods:
            looks: list[Looked] = []
            placer = UnitPlacer(
                cluster.view, tables, level, 1e12, one_by_one=True, look_at=pod.uid, on_look=looks.append
            )
            placed = placer.place([pod], FILTERS, cluster.policy)
            if placed.rows:
                first = cluster.policy.pools.places(cluster.view) == 0  # type: ignore[union-attr]
                seen.append((bool(first[placed.rows[0]]), bool((looks[0].verdict.passes & first).any())))
                by = set(looks[0].passed_over.values())
                assert by <= {"PoolOrder", "predicted memory"}
    in_first, had_room = np.array(seen).T
    assert 20 < in_first.sum() < len(seen) - 20
    np.testing.assert_array_equal(in_first, had_room)


def looked(cluster: VariedCluster, policy: Policy, scores: Sequence[tuple[NodeScore, int]] = ()) -> Looked:
    with cluster.scorer.tables.reading() as tables:
        level, _ = cluster.scorer.tables.level()
        placer = UnitPlacer(cluster.view, tables, level, until=1e12, scores=scores)
        return placer.look([cluster.pods[0]], FILTERS, policy)


def test_without_a_model_the_other_scores_of_a_policy_decide_and_decisions_say_so() -> None:
    others, mixed = (
        by_policy(
            varied_cluster(3, n_pods=30, with_model=False),
            scoring=ScoringPolicy("mixed", {**weights, "qos_balance": 1.0}, SCORES),
            plugin_weights=weighed({**NOTHING, OURS: 1}),
        )
        for weights in ({}, {"predicted_peak": 1.0})
    )
    assert mixed.place(one_by_one=False) == others.place(one_by_one=False)
    (ours,) = looked(mixed, mixed.policy).parts
    assert ours.name == OURS and len(set(ours.points.tolist())) > 2
    with mixed.scorer.tables.reading() as tables:
        advice = advice_of_cycle(
            mixed.scorer.tables, tables, mixed.pods, mixed.choices, because=lambda pod: "", at=0.0, seconds=0.0
        )
    said = "predicted_peak is neutral: no model is in use, qos_balance counts as before"
    assert advice and all(said in one.reasons for one in advice)


class Odd(NodeScore):
    """100 for the nodes of odd rows."""

    name = "DynamicResources"

    def score(self, pod: object, view: object, rows: Ints) -> Ints:
        """See NodeScore."""
        return 100 * (rows % 2)


def test_a_score_of_a_profile_can_be_weighed_and_dropped() -> None:
    cluster = varied_cluster(4)
    first, again, dropped = (
        {part.name: part for part in looked(cluster, policy, [(Odd(), 2)]).parts}.get("DynamicResources")
        for policy in (
            cluster.policy,
            replace(cluster.policy, plugin_weights=weighed({"DynamicResources": 6})),
            replace(cluster.policy, plugin_weights=weighed({"DynamicResources": 0})),
        )
    )
    assert first is not None and again is not None and dropped is None
    assert (first.weight, again.weight, first.points.max()) == (2, 6, 200)
    np.testing.assert_array_equal(again.points, 3 * first.points)
