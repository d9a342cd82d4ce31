"""A snapshot of live tables as a planning problem: the same loads as the scorer says, each pod with its row."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from base.arrays import Ints
from forecast.resources import CPU, RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from rebalancer.cluster_layout import LaidOut, lay_out, predicted_loads, snapshot
from rebalancer.planning.problem import Budget
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer, tables

N_SLOTS = 24
PODS = [pod_of(service, f"{service}-{n}", f"node-{(service + n) % 3}", cpu=1.5) for service in (0, 3) for n in range(3)]
NODES = ("node-0", "node-1", "node-2", "node-3")


def _budget(services: tuple[ServiceKey, ...], namespaces: tuple[str, ...]) -> Budget:
    def each(n: int) -> Ints:
        return np.full(n, 2, dtype=np.int64)

    return Budget(total=5, per_service=each(len(services)), per_namespace=each(len(namespaces)), per_node=2)


def _laid_out(
    tested: LiveScorer,
    may_go: Collection[str] = NODES,
    never: Collection[str] = (),
    left: Mapping[str, frozenset[str]] | None = None,
) -> LaidOut:
    copied = snapshot(tested.scorer.tables, N_SLOTS)
    assert copied is not None

    def cost_of(pod: PodInfo) -> float:
        return math.inf if pod.name in never else 0.5

    return lay_out(
        copied,
        predicted_loads(copied),
        cost_of=cost_of,
        may_go=lambda pod: may_go,
        budget_of=_budget,
        hot=0.8,
        left=lambda pod: (left or {}).get(pod.name, frozenset()),
    )


def test_loads_are_those_that_the_scorer_predicts() -> None:
    tested = LiveScorer(hour=4.0, pods=PODS)
    laid_out = _laid_out(tested)
    problem, predicted = laid_out.problem, tables(tested)
    assert laid_out.nodes == NODES
    assert problem.load.shape == problem.margin.shape == (4, len(RESOURCES), N_SLOTS)
    assert (laid_out.begins.hour, laid_out.begins.minute) == (4, 30), "the half hour under way is left out"
    predicted.set_slot(predicted.horizon.slot + 1)
    np.testing.assert_allclose(
        problem.load[:, CPU, 0], (predicted.base_now() + predicted.pods_now())[:, CPU], rtol=1e-5
    )
    assert (problem.margin >= 0).all() and (problem.margin[:3, CPU] > 0).any()


def test_rows_name_pods_services_and_what_is_free() -> None:
    laid_out = _laid_out(LiveScorer(hour=4.0, pods=PODS))
    columns = laid_out.problem.pods
    assert {pod.uid for pod in laid_out.pods} == {pod.uid for pod in PODS}
    for row, pod in enumerate(laid_out.pods):
        assert laid_out.nodes[int(columns.node[row])] == pod.node
        assert laid_out.service_of(row).name.removeprefix("service-") in {"0", "3"}
        assert laid_out.namespaces[int(columns.namespace[row])] == pod.namespace
    assert len(laid_out.problem.budget.per_service) == len(laid_out.services) == 2
    requested = np.zeros_like(laid_out.problem.free)
    np.add.at(requested, columns.node, columns.requests)
    spare = laid_out.problem.free + requested
    np.testing.assert_array_equal(spare[0], spare[3], err_msg="nodes of one size, less what is requested there")


def test_only_pods_that_may_move_are_asked_about() -> None:
    tested = LiveScorer(hour=4.0, pods=PODS)
    laid_out = _laid_out(tested, may_go=("node-3", "not-there"), never=[pod.name for pod in PODS])
    assert np.isinf(laid_out.problem.pods.cost).all() and not laid_out.problem.allowed.any()
    laid_out = _laid_out(tested, may_go=("node-3", "not-there"))
    allowed = laid_out.problem.allowed[laid_out.problem.pods.shape]
    np.testing.assert_array_equal(allowed, np.tile([False, False, False, True], (len(PODS), 1)))


def test_a_pod_does_not_return_to_a_node_that_it_left() -> None:
    moved = PODS[0].name
    laid_out = _laid_out(LiveScorer(hour=4.0, pods=PODS), left={moved: frozenset({"node-2"})})
    for row, pod in enumerate(laid_out.pods):
        allowed = laid_out.problem.allowed[int(laid_out.problem.pods.shape[row])].tolist()
        assert allowed == [True, True, pod.name != moved, True]
