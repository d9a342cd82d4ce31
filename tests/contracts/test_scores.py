"""What every score must do. Registering one in scorer/scores/score_catalogue.py is enough to have it tested here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import Floats
from forecast.resources import RESOURCES
from scorer.scores.score_catalogue import SCORES, RegisteredScore, scores
from scorer.scores.score_columns import ClusterFigures, ScoredNodeColumns, ScoredPodColumns
from scorer.scores.score_settings import ScoreParameters

GPU = "nvidia.com/gpu"
KINDS = ("cpu", "memory", "pods", "ephemeral-storage", GPU)
UNITS = np.array([1.0, 2.0**30, 1.0, 2.0**30, 1.0])  # what one unit of the drawn numbers is
USAGE_UNITS = np.array([1.0, 2.0**30, 1e6, 1e6, 1e5])
N_RESOURCES = len(RESOURCES)

TUNED = ScoreParameters(
    request_weights={"cpu": 2, "memory": 1, GPU: 5},
    balance_weights={"cpu": 1, "memory": 1, GPU: 3},
    usage_weights={"cpu": 3, "log": 1},
    shape=((0, 10), (60, 10), (100, 0)),
)
TABLES: Mapping[str, Mapping[str, RegisteredScore]] = {"default": SCORES, "tuned": scores(TUNED)}
every_score = pytest.mark.parametrize(
    "score",
    [pytest.param(score, id=f"{name}-{table}") for table, entries in TABLES.items() for name, score in entries.items()],
)

Case = tuple[ScoredNodeColumns, ScoredPodColumns, ClusterFigures]


def random_case(seed: int, n_nodes: int, all_known: bool) -> Case:
    """Nodes of few sizes, so that there are ties; some lack a resource, some are overcommitted, some unknown."""
    rng = np.random.default_rng(seed)

    def amounts(columns: int, highest: int, odd: tuple[float, ...] = ()) -> Floats:
        drawn = rng.integers(0, 8 * highest, (n_nodes, columns)) / 8 if rng.random() < 0.5 else None
        values = rng.choice([0.0, highest / 2, highest], (n_nodes, columns)) if drawn is None else drawn
        if odd and not all_known:
            values = np.where(rng.random(values.shape) < 0.2, rng.choice(odd, values.shape), values)
        return np.asarray(values, dtype=np.float64)

    least = 1.0 if all_known else 0.0
    requested = amounts(len(KINDS), 80) * UNITS
    exact = np.where(rng.random(n_nodes) < 0.5, amounts(1, 4)[:, 0], np.nan)
    nodes = ScoredNodeColumns(
        kinds=KINDS,
        allocatable=(amounts(len(KINDS), 64, (0.0, np.nan, np.inf)) + least) * UNITS,
        requested=requested,
        requested_nonzero=requested[:, :2] + np.array([0.1, 2e8]),
        capacity=(amounts(N_RESOURCES, 64, (0.0, np.nan, np.inf)) + least) * USAGE_UNITS,
        virtual_available=(amounts(N_RESOURCES, 80, (np.nan,)) - 16) * USAGE_UNITS,
        qos_pods=rng.integers(0, 20, (n_nodes, 3)).astype(np.float64)
        * np.where(rng.random((n_nodes, 1)) < 0.8, 1.0, 0.0),
        qos_memory=amounts(3, 64) * 2.0**30,
        predicted_share=amounts(1, 2, (np.nan,))[:, 0],
        exact_cost=exact,
        out_of_memory=rng.random(n_nodes) < rng.choice([0.0, 0.3, 1.0]),
        known=np.full(n_nodes, True) if all_known else rng.random(n_nodes) < rng.choice([0.0, 0.7, 1.0]),
    )
    requests = rng.choice([0.0, 0.125, 1.0, 8.0], len(KINDS)) * UNITS
    virtual = rng.choice([0.0, 0.125, 8.0] if all_known else [0.0, 0.125, 8.0, np.nan], N_RESOURCES)
    pod = ScoredPodColumns(
        requests=requests,
        nonzero=np.maximum(requests[:2], np.array([0.1, 2e8])),
        virtual_request=virtual * USAGE_UNITS,
        qos=int(rng.integers(0, 3)),
    )
    cluster = ClusterFigures(
        qos_pods=nodes.qos_pods.sum(axis=0) + rng.integers(0, 2) * rng.integers(0, 100, 3),
        qos_memory=nodes.qos_memory.sum(axis=0),
        allocatable=known_sum(nodes.allocatable),
        stack_weight=float(rng.choice([0.0, 0.3, 0.5, 1.0])),
    )
    return nodes, pod, cluster


def known_sum(allocatable: Floats) -> Floats:
    """(2,) CPU and memory of all nodes where they are known."""
    return np.asarray(np.where(np.isfinite(allocatable), allocatable, 0.0)[:, :2].sum(axis=0))


def cases(min_nodes: int = 1, all_known: bool = False) -> st.SearchStrategy[Case]:
    return st.builds(random_case, st.integers(0, 10**9), st.integers(min_nodes, 9), st.just(all_known))


def array_fields(case: Case) -> list[Floats]:
    values = [getattr(part, field.name) for part in case for field in fields(part)]
    return [value for value in values if isinstance(value, np.ndarray)]


@every_score
@given(case=cases())
def test_scores_are_finite_and_within_their_range(score: RegisteredScore, case: Case) -> None:
    result = score.compute(*case)
    low, high = score.range
    assert 0 <= low < high <= 100
    assert result.shape == (len(case[0]),)
    assert result.dtype == np.float64
    assert np.isfinite(result).all()
    # Where no node can be judged all get 50, which may lie outside of the range of a score that is never that low.
    assert ((result >= low - 1e-9) & (result <= high + 1e-9)).all() or (result == 50).all()


@every_score
@given(case=cases())
def test_a_score_reads_and_never_writes(score: RegisteredScore, case: Case) -> None:
    for array in array_fields(case):
        array.flags.writeable = False
    first = score.compute(*case)
    first_copy = first.copy()
    if first.flags.writeable:
        first += 1  # what a caller does to the answer must not reach the next one
    np.testing.assert_array_equal(score.compute(*case), first_copy)


@every_score
@given(case=cases(), seed=st.integers(0, 1000))
def test_permuting_nodes_permutes_scores(score: RegisteredScore, case: Case, seed: int) -> None:
    nodes, pod, cluster = case
    order = np.random.default_rng(seed).permutation(len(nodes))
    straight = score.compute(nodes, pod, cluster)
    np.testing.assert_array_equal(score.compute(nodes.take(order), pod, cluster), straight[order])


@every_score
@given(case=cases(all_known=True))
def test_scoring_nodes_together_or_one_by_one_is_the_same(score: RegisteredScore, case: Case) -> None:
    if score.depends_on_other_nodes:
        return
    nodes, pod, cluster = case
    alone = [score.compute(nodes.take(np.array([node])), pod, cluster)[0] for node in range(len(nodes))]
    np.testing.assert_array_equal(score.compute(nodes, pod, cluster), alone)


def more_requested(nodes: ScoredNodeColumns, extra: Floats) -> ScoredNodeColumns:
    more = extra[:, : len(KINDS)] * UNITS
    return replace(nodes, requested=nodes.requested + more, requested_nonzero=nodes.requested_nonzero + more[:, :2])


def more_usage(nodes: ScoredNodeColumns, extra: Floats) -> ScoredNodeColumns:
    return replace(nodes, virtual_available=nodes.virtual_available - extra[:, :N_RESOURCES] * USAGE_UNITS)


def more_predicted(nodes: ScoredNodeColumns, extra: Floats) -> ScoredNodeColumns:
    return replace(nodes, predicted_share=nodes.predicted_share + extra[:, 0])


MORE: Mapping[str, Callable[[ScoredNodeColumns, Floats], ScoredNodeColumns]] = {
    "requested": more_requested,
    "usage": more_usage,
    "predicted": more_predicted,
}


@every_score
@given(case=cases(all_known=True), seed=st.integers(0, 1000))
def test_raw_values_move_as_declared(score: RegisteredScore, case: Case, seed: int) -> None:
    nodes, pod, cluster = case
    raw = score.raw or score.compute
    rng = np.random.default_rng(seed)
    extra = rng.choice([0.0, 0.001, 1.0, 50.0], (len(nodes), max(len(KINDS), N_RESOURCES)))
    before = raw(nodes, pod, cluster)
    assert (score.falls_with | score.rises_with) <= set(MORE)
    for column in score.falls_with:
        assert (raw(MORE[column](nodes, extra), pod, cluster) <= before).all(), column
    for column in score.rises_with:
        assert (raw(MORE[column](nodes, extra), pod, cluster) >= before).all(), column


@pytest.mark.parametrize("name", [name for name, score in SCORES.items() if score.falls_with or score.rises_with])
def test_what_is_declared_does_move(name: str) -> None:
    """A declaration about a column that the score never reads would hold too: at least once the value must differ."""
    score = SCORES[name]
    nodes, pod, cluster = half_full(3)
    raw = score.raw or score.compute
    for column in score.falls_with | score.rises_with:
        changed = raw(MORE[column](nodes, np.full((3, 5), 8.0)), pod, cluster)
        assert (changed != raw(nodes, pod, cluster)).all()


@every_score
@given(case=cases(min_nodes=2, all_known=True))
def test_a_node_nobody_knows_gets_the_median_and_leaves_the_others_alone(score: RegisteredScore, case: Case) -> None:
    nodes, pod, cluster = case
    known = np.arange(len(nodes)) > 0
    result = score.compute(replace(nodes, known=known), pod, cluster)
    np.testing.assert_array_equal(result[1:], score.compute(nodes.take(np.flatnonzero(known)), pod, cluster))
    assert result[0] == np.median(result[1:])
    assert (score.compute(replace(nodes, known=np.zeros_like(known)), pod, cluster) == 50).all()


@every_score
def test_a_node_without_capacity_is_neutral(score: RegisteredScore) -> None:
    nodes, pod, cluster = half_full(5)
    for nothing in (0.0, np.nan):
        allocatable, capacity = nodes.allocatable.copy(), nodes.capacity.copy()
        allocatable[2] = capacity[2] = nothing
        share = nodes.predicted_share.copy()
        share[2] = np.nan
        changed = replace(nodes, allocatable=allocatable, capacity=capacity, predicted_share=share)
        if score.name.startswith("qos"):
            continue  # a mix of pods has no capacity
        result = score.compute(changed, pod, cluster)
        assert result[2] == np.median(np.delete(result, 2))


@every_score
def test_no_nodes_and_a_single_node_are_no_errors(score: RegisteredScore) -> None:
    nodes, pod, cluster = half_full(1)
    assert score.compute(nodes.take(np.array([], dtype=np.int64)), pod, cluster).shape == (0,)
    assert score.compute(nodes, pod, cluster).shape == (1,)


@every_score
def test_scores_tell_nodes_apart(score: RegisteredScore) -> None:
    """A score that never differed would pass all of the above."""
    nodes, pod, cluster = half_full(8)
    assert len(np.unique(score.compute(nodes, pod, cluster))) > 1


def half_full(n: int) -> Case:
    """Nodes with every column known, all different."""
    rng = np.random.default_rng(n)
    size = rng.choice([1.0, 2.0, 4.0], (n, 1))
    allocatable = size * np.array([16.0, 64.0, 110.0, 500.0, 8.0]) * UNITS
    capacity = size * np.array([16.0, 64.0, 500.0, 1000.0, 10.0]) * USAGE_UNITS
    requested = allocatable * rng.uniform(0.2, 0.6, allocatable.shape)
    qos_pods = rng.integers(1, 20, (n, 3)).astype(np.float64)
    nodes = ScoredNodeColumns(
        kinds=KINDS,
        allocatable=allocatable,
        requested=requested,
        requested_nonzero=requested[:, :2] * 1.1,
        capacity=capacity,
        virtual_available=capacity * rng.uniform(0.3, 0.7, capacity.shape),
        qos_pods=qos_pods,
        qos_memory=qos_pods * rng.uniform(1, 3, (n, 3)) * 2.0**30,
        predicted_share=rng.uniform(0.2, 0.6, n),
        exact_cost=np.full(n, np.nan),
        out_of_memory=np.zeros(n, dtype=bool),
        known=np.ones(n, dtype=bool),
    )
    pod = ScoredPodColumns(
        requests=np.array([2.0, 4.0, 1.0, 0.0, 1.0]) * UNITS,
        nonzero=np.array([2.0, 4.0 * 2**30]),
        virtual_request=np.array([0.5, 2.0, 1.0, 1.0, 0.1]) * USAGE_UNITS,
        qos=1,
    )
    in_cluster = qos_pods.sum(axis=0), nodes.qos_memory.sum(axis=0), known_sum(allocatable)
    return nodes, pod, ClusterFigures(*in_cluster, stack_weight=0.2)


@every_score
@given(case=cases())
def test_a_score_reads_only_what_it_says(score: RegisteredScore, case: Case) -> None:
    nodes, pod, cluster = case
    unread = {
        field.name: np.full_like(getattr(nodes, field.name), np.nan if field.name != "out_of_memory" else True)
        for field in fields(nodes)
        if field.name not in score.reads | {"kinds", "known"}
    }
    np.testing.assert_array_equal(score.compute(replace(nodes, **unread), pod, cluster), score.compute(*case))
