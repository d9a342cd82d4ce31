"""The sparse matrices say what the runs of pods say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.history import Placements
from forecast.peak_weights.observations import observe
from forecast.peak_weights.pods_on_nodes import compose, day_counts
from testing.clusters.constructed import constructed

N_SERVICES, N_NODES = 4, 3


@st.composite
def runs_of_a_day(draw: st.DrawFn) -> Placements:
    n = draw(st.integers(0, 12))

    def integers(most: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)), dtype=np.int64)

    first = integers(48)
    return Placements(
        np.arange(n), integers(N_SERVICES - 1), integers(N_NODES - 1), first, np.maximum(first, integers(48))
    )


@given(runs_of_a_day())
def test_counts_of_a_day_are_those_of_each_slot(runs: Placements) -> None:
    counts = day_counts(runs, N_SERVICES, N_NODES).toarray().reshape(48, N_NODES, 48, N_SERVICES)
    for slot in range(48):
        np.testing.assert_array_equal(counts[slot, :, slot], runs.counts(N_SERVICES, N_NODES, slot))
    assert counts.sum() == (runs.end - runs.first).sum()  # nothing outside the diagonal


@given(runs_of_a_day(), runs_of_a_day(), st.sampled_from([1, 4, 16]))
def test_a_matrix_of_days_adds_services_base_and_deviation(monday: Placements, sunday: Placements, every: int) -> None:
    slots, size, node_class = np.arange(0, 48, every), np.array([1.0, 2.0, 0.5]), np.array([0, 1, 0])
    parts = compose([monday, sunday], np.array([0, 1]), slots, N_SERVICES, node_class, size)
    x = np.random.default_rng(0).random((parts.matrix.shape[1], 2))
    rows = (parts.matrix @ x).reshape(2, len(slots), N_NODES, 2)
    for kind, runs in enumerate((monday, sunday)):
        for i, slot in enumerate(slots):
            counts = runs.counts(N_SERVICES, N_NODES, int(slot))
            base = parts.base(x)[kind, i][node_class] * size[:, None]
            expected = counts @ parts.curves(x)[kind, i] + base + parts.deviation(x)
            np.testing.assert_allclose(rows[kind, i], expected, rtol=1e-5)


def test_what_measured_pods_use_is_taken_off_and_what_is_unknown_stays_unknown() -> None:
    history, _ = constructed(n_services=10, n_nodes=6, n_days=3)
    history.node_pod_usage[2, 0, 1] = np.nan  # a gap: its pods are measured on other days
    seen = observe(history)
    np.testing.assert_allclose(seen.beside[0, 0], history.node_usage[0, 0] - history.node_pod_usage[0, 0], rtol=1e-5)
    assert np.isnan(seen.beside[2, 0, 1]).all()
    np.testing.assert_array_equal(seen.beside[:, 4], history.node_usage[:, 4])  # log: no pod was ever measured
    assert seen.usable.all() and len(seen.kinds) == 1


@pytest.mark.parametrize(("n_nodes", "n_days", "usable"), [(2, 5, False), (3, 2, True), (5, 1, False)])
def test_two_nodes_or_one_day_cannot_be_taken_apart(n_nodes: int, n_days: int, usable: bool) -> None:
    history, _ = constructed(n_services=5, n_nodes=n_nodes, n_days=n_days)
    assert (observe(history).usable == usable).all()
