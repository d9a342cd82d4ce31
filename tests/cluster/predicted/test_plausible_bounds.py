"""Peaks of nodes are finite, non-negative and ordered by quantile, whatever the history or the model says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.predicted.horizon import Horizon
from cluster.predicted.node_curves import NodeCurves, gather, node_curves
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.predicted_cluster import PredictedCluster
from forecast.fit import FitOptions, fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import artefact_of, model_of
from forecast.resources import MEMORY, RESOURCES
from tests.scorer.live_cluster import pod_of, service
from tests.synthetic import synthetic_history

N_SERVICES, N_NODES, N_DAYS = 3, 8, 8


def seen_by_scorer(model: PeakModel, live_error: float = 0.0) -> NodeCurves:
    """Curves of the model's nodes, each with one pod of every service, as the scorer makes them at 04:00."""
    midnight = model.calendar.midnight(model.first_day).timestamp()
    horizon = Horizon.at(datetime.fromtimestamp(midnight + 4 * 3600, UTC), model.calendar)
    cluster = PredictedCluster(Profiles(model), horizon)
    for row, name in enumerate(model.nodes):
        cluster.set_node(row, name, np.full(len(RESOURCES), 40.0))
        for number in range(len(model.services)):
            pod = pod_of(number, f"p{row}-{number}")
            cluster.place(pod, service(number), row, 1.0, float(model.reference_replicas[number]))
    rows = list(range(len(model.nodes)))
    fading = cluster.horizon.fading(12)
    cluster.load.set_live_error(np.full((len(rows), len(RESOURCES)), live_error), fading)
    return node_curves(
        cluster.profiles, cluster.bases, gather(cluster, rows), cluster.horizon.days, fading=fading, widen=1.5
    )


def assert_plausible(curves: NodeCurves) -> None:
    mean = curves.mean()
    median, bound = curves.peaks(0), curves.peaks(1)
    for values in (mean, curves.curve(0), curves.curve(1), median, bound):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert (median <= bound).all()
    assert (curves.curve(1) >= mean).all()


def history_of(
    scale: list[float], measured: list[float], noise: float, node_noise: float, used: slice = slice(None)
) -> History:
    """A small cluster whose nodes report `measured[r]` times the sum of their pods.

    scale      : per resource, base units of one pod of the first service; 0 = never uses any
    measured   : per resource, usage of a node / sum of its pods
    noise      : relative noise of services; node_noise: of nodes
    used       : days on which pods use anything; 0 on the others
    """
    history = synthetic_history(n_services=N_SERVICES, n_nodes=N_NODES, n_days=N_DAYS, noise=noise)
    on = np.zeros(N_DAYS)
    on[used] = 1.0
    of_resource = np.array(scale)[None, :, None, None] * on[:, None]
    of_nodes = np.array(measured)[None, :, None, None]
    rng = np.random.default_rng(0)
    pods = history.node_pod_usage * of_resource
    nodes = pods * of_nodes * np.exp(node_noise * rng.normal(size=pods.shape))
    return replace(
        history,
        capacity=history.capacity * 3 * np.maximum(scale, 1.0),
        usage_per_pod=(history.usage_per_pod * of_resource).astype(np.float32),
        pod_variance=(history.pod_variance * of_resource**2 * (noise > 0)).astype(np.float32),
        node_pod_usage=pods.astype(np.float32),
        node_usage=nodes.astype(np.float32),
    )


amounts = st.lists(st.sampled_from([0.0, 1e-6, 1.0, 1e9, 1e15]), min_size=len(RESOURCES), max_size=len(RESOURCES))
shares = st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0, 3.0]), min_size=len(RESOURCES), max_size=len(RESOURCES))


@settings(max_examples=8, deadline=None)
@given(
    scale=amounts,
    measured=shares,
    noise=st.sampled_from([0.0, 0.3]),
    node_noise=st.sampled_from([0.0, 0.5]),
    used=st.sampled_from([slice(None), slice(2), slice(6, None)]),
)
def test_peaks_are_plausible_whatever_the_history(
    scale: list[float], measured: list[float], noise: float, node_noise: float, used: slice
) -> None:
    model = fit(history_of(scale, measured, noise, node_noise, used), FitOptions(rehearsal_weeks=1))
    artefact = artefact_of(model, datetime(2026, 6, 1, tzinfo=UTC))
    assert_plausible(seen_by_scorer(model_of(artefact, datetime(2026, 6, 1, tzinfo=UTC))))
    services = model.service_peaks(model.first_day)
    assert np.isfinite(services).all()
    assert (services >= 0).all()
    assert (services[..., 0] <= services[..., 1]).all()


@pytest.mark.parametrize("share", [0.5, 0.8, 1.2])
def test_constant_memory_that_nodes_and_pods_report_differently_gets_no_absurd_bound(share: float) -> None:
    history = history_of([1.0, 1e9, 1.0, 1.0, 1.0], [1.0] * 5, 0.0, 0.0)
    usage, pods = history.usage_per_pod.copy(), history.node_pod_usage.copy()
    usage[:, MEMORY], pods[:, MEMORY] = 1e9, 1e9 * len(history.services) * 4 / N_NODES
    nodes = history.node_usage.copy()
    nodes[:, MEMORY] = share * pods[:, MEMORY]
    history = replace(history, usage_per_pod=usage, node_pod_usage=pods, node_usage=nodes)
    curves = seen_by_scorer(fit(history, FitOptions(rehearsal_weeks=1)))
    assert_plausible(curves)
    expected = curves.mean()[:, MEMORY].max()
    assert curves.peaks(0)[:, MEMORY].min() > 0.5 * expected
    assert curves.peaks(1)[:, MEMORY].max() < 1.5 * expected
