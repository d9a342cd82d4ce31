from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scorer.scores.qos_balance import part_of_cluster, qos_balance_score
from scorer.scores.score_catalogue import SCORES
from scorer.scores.score_columns import ClusterFigures
from tests.contracts.test_scores import half_full

CLUSTER = np.array([50.0, 30.0, 20.0])
UNKNOWN = np.zeros(1)


@pytest.mark.parametrize(
    ("on_node", "qos", "score"),
    [
        # Pn = Pc: 10 * |1 - 0| = 10 of 20
        ((5.0, 3.0, 2.0), 0, 50.0),
        # an empty node of unknown size counts as Pn = Pc
        ((0.0, 0.0, 0.0), 2, 50.0),
        # Pn = 0, Pc = 0.5: 10 * 1.5 = 15 of 20
        ((0.0, 3.0, 2.0), 0, 75.0),
        # Pn = 1, Pc = 0.2: 10 * 0.2 = 2 of 20
        ((0.0, 0.0, 4.0), 2, 10.0),
        # 31 pods: one more or less is seen, no rounding in between
        ((15.0, 10.0, 6.0), 0, 50 * (1 - (15 / 31 - 0.5))),
    ],
)
def test_score(on_node: tuple[float, ...], qos: int, score: float) -> None:
    assert qos_balance_score(np.array([on_node]), CLUSTER, qos, UNKNOWN)[0] == pytest.approx(score, rel=1e-12)


def test_an_empty_cluster_is_neutral() -> None:
    assert qos_balance_score(np.zeros((3, 3)), np.zeros(3), 1, np.full(3, 1 / 3)).tolist() == [50, 50, 50]


def test_a_node_with_fewer_pods_than_its_size_is_judged_by_those_it_should_have() -> None:
    # A quarter of the cluster should have 25 pods, 12.5 of them guaranteed: Pn = 5 / 25, 10 * (1 - 0.2 + 0.5) of 20
    on_node = np.array([[5.0, 3.0, 2.0], [0.0, 0.0, 0.0], [25.0, 15.0, 10.0]])
    assert qos_balance_score(on_node, CLUSTER, 0, np.full(3, 0.25)).tolist() == pytest.approx([65.0, 75.0, 50.0])


def test_a_node_is_the_mean_of_its_parts_of_what_is_known() -> None:
    allocatable = np.array([[10.0, 300.0], [30.0, 100.0], [np.nan, 0.0]])
    assert part_of_cluster(allocatable, np.array([40.0, 400.0])).tolist() == [0.5, 0.5, 0.0]
    assert part_of_cluster(allocatable, np.array([40.0, 0.0])).tolist() == [0.25, 0.75, 0.0]
    assert part_of_cluster(allocatable, np.zeros(2)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 2.0]])
@pytest.mark.parametrize("name", ["qos_balance", "qos_memory"])
def test_alone_it_spreads_each_class_by_the_size_of_nodes(name: str, sizes: list[float]) -> None:
    """100 nodes, 3,000 pods, no other score: the counts per class of a node are what its size asks for."""
    nodes, pod, _ = half_full(100)
    size = np.resize(sizes, (100, 1))
    pods, allocatable = np.zeros((100, 3)), np.tile([32.0, 2.0**37, 110.0, 1.0, 1.0], (100, 1)) * size
    for qos in np.random.default_rng(1).choice(3, 3000, p=[0.3, 0.4, 0.3]).tolist():
        changed = replace(nodes, allocatable=allocatable, qos_pods=pods, qos_memory=pods)
        in_cluster = ClusterFigures(pods.sum(axis=0), pods.sum(axis=0), allocatable[:, :2].sum(axis=0), 0.0)
        pods[SCORES[name].compute(changed, replace(pod, qos=qos), in_cluster).argmax(), qos] += 1
    expected = pods.sum(axis=0) * size / size.sum()
    assert ((pods - expected) ** 2).mean(axis=0).sum() < 1.0  # 28.9 at random


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 2), st.sampled_from([0.0, 0.3]))
def test_one_more_pod_of_a_class_never_raises_its_score(
    g: int, b: int, best_effort: int, qos: int, of_cluster: float
) -> None:
    before, part = np.array([[g, b, best_effort]], dtype=float), np.array([of_cluster])
    assume(before.sum() > 0 or of_cluster)  # an empty node of unknown size is neutral, whatever comes first
    after = before.copy()
    after[0, qos] += 1
    assert qos_balance_score(after, CLUSTER, qos, part) <= qos_balance_score(before, CLUSTER, qos, part)
