from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.errors import InputError, UnknownName
from forecast.resources import CPU, DISK
from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.filters.predicted_peak import PredictedPeak
from placement.index.index import PlacementIndex
from testing.placement.views import PASSES, Verdict, passing, verdicts
from tests.scorer.live_cluster import node, pod_of
from tests.scorer.scorer_at import LiveScorer

SMALL, LARGE = "node-0", "node-1"


def view_at_five(*pods: PodInfo, without_model: bool = False) -> ClusterView:
    """node-0 of 4 cores, the others of 40; five o'clock in the afternoon."""
    tested = LiveScorer(pods=pods, without_model=without_model, sizes=(4.0, 40.0, 40.0))
    cluster = tested.scorer.tables._cluster
    return ClusterView(cluster, PlacementIndex(cluster.state))


def peak_on(view: ClusterView, node_name: str, pod: PodInfo) -> float:
    """Share of CPU, straight from the curves: the node's highest half hour plus the pod's."""
    assert view.cluster.predicted is not None
    load, row = view.cluster.predicted.load, view.state.row_of[node_name]
    counted, profile = view.cluster.predicted.horizon.weights() > 0, view.cluster.profile(pod)
    tables = load.snapshot()
    of_pod = tables.usage[profile, CPU, counted].max() * tables.per_capacity[row, CPU]
    return float(load.share(np.array([row]))[0, CPU, counted].max() + of_pod)


def test_nodes_that_would_pass_the_threshold() -> None:
    view, pod = view_at_five(pod_of(0, "there", "node-0")), pod_of(1, "new")
    small, large = peak_on(view, SMALL, pod), peak_on(view, LARGE, pod)
    assert large < small

    between = PredictedPeak({"cpu": (small + large) / 2})

    assert verdicts(between, pod, view)[LARGE] == PASSES
    rejected = verdicts(between, pod, view)[SMALL]
    assert rejected.preemptible and len(rejected.reasons) == 1
    assert passing(PredictedPeak({"cpu": small + 1e-3}), pod, view) == {"node-0", "node-1", "node-2"}
    assert passing(PredictedPeak({"cpu": small - 1e-3}), pod, view) == {"node-1", "node-2"}


def test_each_resource_says_so() -> None:
    tested = PredictedPeak({"cpu": 1e-6, "memory": 0.000002})

    found = verdicts(tested, pod_of(1, "new"), view_at_five())[SMALL]

    assert found == Verdict.no(
        "placing load of cpu would pass 0.0001 % of capacity",
        "placing load of memory would pass 0.0002 % of capacity",
        preemptible=True,
    )


def test_a_node_whose_capacity_nobody_knows() -> None:
    tested = LiveScorer(sizes=(4.0,))
    tested.scorer.tables.put(Kind.NODES, node("stranger", 4.0))
    cluster = tested.scorer.tables._cluster
    view = ClusterView(cluster, PlacementIndex(cluster.state))
    assert np.isnan(view.cluster.capacity[view.state.row_of["stranger"], DISK])

    assert passing(PredictedPeak({"disk": 1e-9}), pod_of(1, "new"), view) == {"stranger"}


def test_off_without_thresholds_or_model() -> None:
    assert not PredictedPeak({}).filter(pod_of(1, "new"), view_at_five())
    assert not PredictedPeak({"cpu": 1e-6}).filter(pod_of(1, "new"), view_at_five(without_model=True))


def test_who_is_let_through() -> None:
    tested, view, pod = PredictedPeak({"cpu": 1e-6}), view_at_five(), pod_of(1, "new")

    assert tested.filter(pod, view)
    assert not tested.filter(replace(pod, annotations={"forecast-scheduler.io/opt-out": "true"}), view)
    assert tested.filter(replace(pod, annotations={"forecast-scheduler.io/opt-out": "false"}), view)
    assert not tested.filter(replace(pod, owner=Owner("DaemonSet", "agent")), view)


def test_a_node_that_came_after_the_tables_were_made() -> None:
    tested = LiveScorer(sizes=(4.0,))
    tested.scorer.tables.put(Kind.NODES, node("node-7", 4.0))
    cluster = tested.scorer.tables._cluster
    view = ClusterView(cluster, PlacementIndex(cluster.state))

    assert passing(PredictedPeak({"cpu": 1e-6}), pod_of(1, "new"), view) == set()
    assert passing(PredictedPeak({"cpu": 1e3}), pod_of(1, "new"), view) == {"node-0", "node-7"}


@pytest.mark.parametrize("threshold", [0.0, -1.0, float("nan"), float("inf")])
def test_thresholds_that_are_no_shares(threshold: float) -> None:
    with pytest.raises(InputError, match="no share of capacity"):
        PredictedPeak({"cpu": threshold})


def test_resources_that_are_not_predicted() -> None:
    with pytest.raises(UnknownName, match="gpu"):
        PredictedPeak({"gpu": 0.9})
