"""What people see of a node is what the model says of the pods on it: one path from the model to a curve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats
from cluster.predicted.horizon import Horizon
from cluster.predicted.load_parts import NodeBases
from cluster.predicted.node_curves import gather, node_curves
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.predicted_cluster import PredictedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import peak_at
from forecast.history import Placements
from forecast.node_forecast import node_forecast
from tests.scorer.live_cluster import model, moment, pod_of, service

ON_NODE = {0: [0, 0, 1, 5], 1: [2, 3], 2: [], 3: [4, 4, 4, 0]}
FULL = np.full(5, 40.0)
REPLICAS = np.array([4.0, 3.0, 8.0, 4.0, 2.0, 4.0])


def predicted(hour: float = 17.0) -> PredictedCluster:
    cluster = PredictedCluster(Profiles(model()), Horizon.at(moment(hour), model().calendar))
    for row, services in ON_NODE.items():
        cluster.set_node(row, f"node-{row}", FULL)
        for i, number in enumerate(services):
            name = f"p{row}-{i}"
            cluster.place(pod_of(number, name), service(number), row, 1.0, REPLICAS[number])
    return cluster


def curves(cluster: PredictedCluster, **more: object) -> Floats:
    inputs = gather(cluster, [0, 1, 2, 3])
    days = cluster.horizon.days
    return node_curves(cluster.profiles, cluster.bases, inputs, days, **more).mean()  # type: ignore[arg-type]


def test_they_are_the_node_forecast_of_the_model_which_the_backtest_measured() -> None:
    cluster = predicted()
    pairs = [(number, row) for row, services in ON_NODE.items() for number in services]
    n_slots = 7 * SLOTS_PER_DAY
    placements = Placements(
        pod=np.arange(len(pairs)),
        service=np.array([number for number, _ in pairs]),
        node=np.array([row for _, row in pairs]),
        first=np.zeros(len(pairs), dtype=np.int64),
        end=np.full(len(pairs), n_slots),
    )
    expected = node_forecast(model(), placements, cluster.horizon.days, REPLICAS)
    found = node_curves(cluster.profiles, cluster.bases, gather(cluster, [0, 1, 2, 3]), cluster.horizon.days)
    for r, load in enumerate(expected):
        np.testing.assert_allclose(found.loads[r].mean, load.mean, rtol=1e-5)
        np.testing.assert_allclose(found.loads[r].std, load.std, rtol=1e-4)
        np.testing.assert_allclose(found.peaks(1)[:, r], peak_at(load, float(model().node_z[r, 1])), rtol=1e-4)


def test_a_bound_has_the_z_of_its_node_and_one_that_the_model_does_not_know_that_of_all() -> None:
    z = model().node_bound_z.copy()
    z[1] += 1.0
    bases = NodeBases(replace(model(), node_bound_z=z))
    first, second = model().nodes[:2]
    np.testing.assert_allclose(bases.z(first), model().node_z, rtol=1e-6)
    np.testing.assert_allclose(bases.z(second)[:, 1], model().node_z[:, 1] + 1.0, rtol=1e-6)
    np.testing.assert_allclose(bases.z("unknown"), model().node_z, rtol=1e-6)


def test_nodes_may_be_asked_for_in_any_order_and_beside_a_pod_more() -> None:
    cluster = predicted()
    days = cluster.horizon.days
    profile = cluster.placed["uid-p1-0"].profile
    inputs = gather(cluster, [3, 2, 2], [None, None, profile])
    mean = node_curves(cluster.profiles, cluster.bases, inputs, days).mean()
    every = curves(cluster)
    np.testing.assert_allclose(mean[0], every[3])
    np.testing.assert_allclose(mean[1], every[2])
    one = cluster.profiles.mean([service(2)], REPLICAS[[2]], days)[0]
    np.testing.assert_allclose(mean[2] - mean[1], one, rtol=1e-4, atol=1e-5)
    cluster.place(pod_of(2, "more"), service(2), 2, 1.0, REPLICAS[2])
    np.testing.assert_allclose(curves(cluster)[2], mean[2])


def test_what_is_used_beyond_the_forecast_fades_and_age_widens_bounds() -> None:
    cluster = predicted(17.0)
    before = curves(cluster)
    error = np.zeros((4, 5))
    error[1, 0] = 6.0
    fading = cluster.horizon.fading(12)
    cluster.load.set_live_error(error, fading)
    difference = curves(cluster, fading=fading) - before
    assert not difference[[0, 2, 3]].any()
    assert not difference[1, 1:].any()
    np.testing.assert_allclose(difference[1, 0, [33, 34, 46, 58]], [0.0, 6.0, 3.0, 1.5], rtol=1e-5)
    np.testing.assert_array_equal(curves(cluster), before)  # not asked for
    cluster = predicted()
    inputs, days = gather(cluster, [0, 1, 2, 3]), cluster.horizon.days
    sharp = node_curves(cluster.profiles, cluster.bases, inputs, days)
    wide = node_curves(cluster.profiles, cluster.bases, inputs, days, widen=2.0)
    np.testing.assert_array_equal(wide.mean(), sharp.mean())
    for r in range(5):
        floor = 0.01 * sharp.loads[r].mean
        above = sharp.loads[r].std > 1.001 * floor
        assert above.any()
        np.testing.assert_allclose(wide.loads[r].std[above], 2 * sharp.loads[r].std[above], rtol=1e-6)
        assert (wide.loads[r].std >= floor).all()


@pytest.mark.parametrize("first", [0, 34, 47, 95])
def test_some_half_hours_are_as_in_the_whole_curve(first: int) -> None:
    cluster = predicted()
    cluster.load.set_live_error(np.full((4, 5), 2.0), cluster.horizon.fading(12))
    inputs, days, slots = gather(cluster, [0, 1, 2, 3]), cluster.horizon.days, slice(first, first + 2)
    fading = cluster.horizon.fading(12)
    whole, some = (
        node_curves(cluster.profiles, cluster.bases, inputs, days, fading=fading, widen=1.5, slots=wanted)
        for wanted in (slice(None), slots)
    )
    np.testing.assert_allclose(some.mean(), whole.mean()[:, :, slots], rtol=1e-6)
    np.testing.assert_allclose(some.curve(1), whole.curve(1)[:, :, slots], rtol=1e-6)


def test_pods_of_unknown_services_are_in_them_with_a_wide_bound() -> None:
    cluster = PredictedCluster(Profiles(model()), Horizon.at(moment(3.0), model().calendar))
    cluster.set_node(0, "node-0", FULL)
    empty = gather(cluster, [0])
    cluster.place(pod_of(None, "new", cpu=2.0, memory=2.0), service(99), 0, 1.0, 1.0)
    days = cluster.horizon.days
    before, after = (
        node_curves(cluster.profiles, cluster.bases, inputs, days) for inputs in (empty, gather(cluster, [0]))
    )
    expected = cluster.profiles.mean_from_requests(2.0, 2.0, days)
    np.testing.assert_allclose((after.mean() - before.mean())[0], expected, rtol=1e-4, atol=1e-5)
    assert (after.loads[0].std[0] >= expected[0] * 0.7).all()


def test_a_node_the_model_has_never_seen_borrows_its_base_by_size_if_the_model_has_any() -> None:
    bases = NodeBases(model())
    days = model().calendar.horizon(model().first_day, 2)
    small, large = bases.mean("new", FULL / 2, days), bases.mean("new", FULL, days)
    np.testing.assert_allclose(large, 2 * small)
    np.testing.assert_allclose(large, np.median([bases.mean(n, FULL, days) for n in model().nodes], axis=0), rtol=0.1)
    unlimited = FULL.copy()
    unlimited[2] = np.nan
    assert not bases.mean("new", unlimited, days)[2].any()
    assert not bases.std("new", unlimited)[2].any()
    none = replace(
        model(), nodes=(), node_base=model().node_base[:0], node_base_std=model().node_base_std[:0],
        node_capacity=model().node_capacity[:0],
    )  # fmt: skip
    assert not NodeBases(none).mean("new", FULL, (model().first_day,)).any()
