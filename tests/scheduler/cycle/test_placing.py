"""Batches of like pods go exactly where the same pods would go one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scheduler.cycle.ranked_by_kind import BestFirst
from tests.scheduler.cycle.varied_cluster import VariedCluster, varied_cluster


def assert_same(seed: int, **kind: Any) -> None:
    batches, single = varied_cluster(seed, **kind), varied_cluster(seed, **kind)
    together, alone = batches.place(one_by_one=False), single.place(one_by_one=True)
    assert together == alone
    assert_same_choices(batches, single)
    with batches.scorer.tables.reading() as one, single.scorer.tables.reading() as other:
        np.testing.assert_array_equal(one.state.requested, other.state.requested)
        if one.predicted is not None and other.predicted is not None:
            everything = np.arange(one.state.n_rows)
            np.testing.assert_array_equal(one.predicted.load.share(everything), other.predicted.load.share(everything))


def assert_same_choices(batches: VariedCluster, single: VariedCluster) -> None:
    """How the chosen nodes stood among the others: one by one, all sums are made and compared."""
    assert batches.choices.keys() == single.choices.keys()
    for uid, choice in batches.choices.items():
        alone = single.choices[uid]
        assert (choice.row, choice.n_nodes, choice.total is None) == (alone.row, alone.n_nodes, alone.total is None)
        if choice.total is not None and alone.total is not None:
            assert choice.total == pytest.approx(alone.total, rel=1e-6)
        assert (choice.runner_up is None) == (alone.runner_up is None)
        if choice.runner_up is not None and alone.runner_up is not None:
            assert choice.runner_up[1] == pytest.approx(alone.runner_up[1], rel=1e-6)
            assert choice.runner_up[0] == alone.runner_up[0]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 200))
def test_on_many_clusters(seed: int) -> None:
    assert_same(seed, with_model=bool(seed % 4))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_a_batch_of_job_pods_is_placed_as_one_by_one(seed: int) -> None:
    """Every other service runs for a while only, each for another."""

    def runs(pod: PodInfo, service: ServiceKey) -> float | None:
        number = sum(map(ord, service.name))
        return None if number % 3 == 0 else 600.0 * (1 + number % 11)

    assert_same(seed, run_of=runs)
    cluster = varied_cluster(seed, run_of=runs)
    cluster.place(one_by_one=False)
    with cluster.scorer.tables.reading() as tables:
        predicted = tables.predicted
        assert predicted is not None
        weighed = {
            predicted.keys[predicted.placed[pod.uid].profile].run for pod in cluster.pods if pod.uid in predicted.placed
        }
        assert len(weighed) > 1


@given(
    worth=st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]) | st.floats(-3, 3), max_size=700),
    wanted=st.lists(st.integers(0, 800), max_size=4),
    every=st.integers(1, 3),
)
def test_what_is_sorted_is_the_beginning_of_a_stable_sort(worth: list[float], wanted: list[int], every: int) -> None:
    values, positions = np.array(worth, dtype=np.float64), np.arange(0, len(worth), every)
    whole = positions[np.argsort(-values[positions], kind="stable")]
    order = BestFirst(values, positions)
    for n in wanted:
        first = order.first(n)
        assert len(first) >= min(n, len(positions))
        np.testing.assert_array_equal(first, whole[: len(first)])


def test_only_the_best_are_sorted() -> None:
    order = BestFirst(np.arange(5_000.0), np.arange(5_000))
    assert order.first(1)[0] == 4_999
    assert len(order.first(1)) < 500
