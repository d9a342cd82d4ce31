"""Pods of a release that change places: what it gains, what it never does, and what it may cost."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import Bools, Floats, Floats32, Ints
from cluster.predicted.placed_together import FilledNodes, Release, _Search, rearranged
from cluster.predicted.power_growth import MEMORY_LIMIT, RESOURCE_WEIGHTS
from forecast.resources import CPU, MEMORY, RESOURCES

N_RESOURCES, N_POINTS = len(RESOURCES), 6
MORNING, EVENING = 1, 4


def usage(cpu: Floats, memory: float = 0.0) -> Floats:
    """(n_resources, n_points) of a pod."""
    curves = np.zeros((N_RESOURCES, N_POINTS))
    curves[CPU], curves[MEMORY] = cpu, memory
    return curves


def peak_at(point: int, cores: float = 2.0, memory: float = 0.0) -> Floats:
    cpu = np.full(N_POINTS, 0.1)
    cpu[point] = cores
    return usage(cpu, memory)


def filled(
    release: Release, capacity: Floats, free: Floats, base: Floats | None = None, weights: Floats | None = None
) -> FilledNodes:
    """Nodes with the pods of the release on them.

    capacity : (n_nodes, n_resources) NaN = not a limit; free : (n_nodes, n_requested) with the pods
    base     : (n_nodes, n_resources, n_points) load besides these, base units
    """
    per_capacity = np.nan_to_num(1 / capacity)
    load = np.zeros((len(capacity), N_RESOURCES, N_POINTS)) if base is None else base.copy()
    np.add.at(load, release.node, release.usage[release.profile])
    return FilledNodes(
        share=(load * per_capacity[:, :, None]).astype(np.float32),
        per_capacity=per_capacity.astype(np.float32),
        free=free,
        point_weights=np.ones(N_POINTS) if weights is None else weights,
    )


def cpu_nodes(n_nodes: int, cores: float = 4.0) -> Floats:
    capacity = np.full((n_nodes, N_RESOURCES), np.nan)
    capacity[:, CPU] = cores
    return capacity


def release_of(curves: list[Floats], profile: list[int], node: list[int], allowed: Bools | None = None) -> Release:
    """Pods that request one core each."""
    requests = np.tile([1.0, 0.0], (len(profile), 1))
    return Release(np.stack(curves), np.array(profile), requests, np.array(node), allowed)


def share_with(release: Release, nodes: FilledNodes, node: Ints) -> Floats:
    """(n_nodes, n_resources, n_points) once the pods are on `node`."""
    share = nodes.share.astype(np.float64)
    used = release.usage[release.profile]
    np.add.at(share, release.node, -used * nodes.per_capacity[release.node][:, :, None])
    np.add.at(share, node, used * nodes.per_capacity[node][:, :, None])
    return share


def cost_with(release: Release, nodes: FilledNodes, node: Ints) -> float:
    """By the formula at the head of the module."""
    power = np.maximum(share_with(release, nodes, node), 0.0) ** 6
    capacity = 1 / np.where(nodes.per_capacity > 0, nodes.per_capacity, np.nan).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resource that no node has
        size = np.nan_to_num((capacity / np.nanmean(capacity, axis=0)) ** 0.5)
    return float(((power * nodes.point_weights).sum(axis=2) * size * RESOURCE_WEIGHTS).sum())


def free_with(release: Release, nodes: FilledNodes, node: Ints) -> Floats:
    free = nodes.free.copy()
    np.add.at(free, release.node, release.requests)
    np.add.at(free, node, -release.requests)
    return free


@st.composite
def filled_clusters(draw: st.DrawFn) -> tuple[Release, FilledNodes]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_nodes, n_pods, n_profiles = draw(st.integers(1, 5)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    capacity = rng.choice([np.nan, 2.0, 4.0, 8.0], size=(n_nodes, N_RESOURCES))
    release = Release(
        usage=rng.gamma(0.5, 1.0, size=(n_profiles, N_RESOURCES, N_POINTS)),
        profile=rng.integers(n_profiles, size=n_pods),
        requests=rng.choice([0.0, 0.5, 1.0], size=(n_pods, 2)),
        node=rng.integers(n_nodes, size=n_pods),
        allowed=rng.random((n_pods, n_nodes)) < 0.8 if draw(st.booleans()) else None,
    )
    free = rng.choice([-1.0, 0.0, 0.5, 3.0, np.inf], size=(n_nodes, 2))
    base = rng.gamma(0.3, 1.0, size=(n_nodes, N_RESOURCES, N_POINTS))
    weights = rng.choice([0.0, 1.0, 2.0], size=N_POINTS)
    return release, filled(release, capacity, free, base, weights)


def is_legal(release: Release, nodes: FilledNodes, before: Ints, after: Ints) -> bool:
    """Whether pods may go from `before` to `after` at once."""
    moved = np.flatnonzero(before != after)
    free, was_free = free_with(release, nodes, after), free_with(release, nodes, before)
    memory = share_with(release, nodes, after)[:, MEMORY, nodes.point_weights > 0].max(axis=1, initial=0.0)
    had = share_with(release, nodes, before)[:, MEMORY, nodes.point_weights > 0].max(axis=1, initial=0.0)
    known: Bools = np.asarray((nodes.per_capacity > 0).any(axis=1))
    return bool(
        ((free >= -1e-6) | (free >= was_free - 1e-9)).all()
        and ((memory <= MEMORY_LIMIT + 1e-5) | (memory <= had + 1e-5)).all()
        and known[before[moved]].all()
        and known[after[moved]].all()
        and (release.allowed is None or release.allowed[moved, after[moved]].all())
    )


@given(filled_clusters())
def test_the_cost_falls_and_nothing_is_broken(cluster: tuple[Release, FilledNodes]) -> None:
    release, nodes = cluster
    before = release.node.copy(), nodes.share.copy(), nodes.free.copy()
    node = rearranged(release, nodes, passes=3)
    assert is_legal(release, nodes, release.node, node)
    cost, was = cost_with(release, nodes, node), cost_with(release, nodes, release.node)
    assert cost <= was * (1 + 1e-5)
    assert cost < was or (node == release.node).all()
    for was_given, now in zip(before, (release.node, nodes.share, nodes.free), strict=True):
        np.testing.assert_array_equal(was_given, now)


@given(filled_clusters())
def test_in_the_end_no_move_and_no_exchange_lowers_the_cost(cluster: tuple[Release, FilledNodes]) -> None:
    """With all of them looked at, against the definition, one by one."""
    release, nodes = cluster
    n_pods, n_nodes = len(release.profile), len(nodes.share)
    node = rearranged(release, nodes, looks=n_pods + n_nodes, passes=100)
    reached = cost_with(release, nodes, node)
    others = []
    for pod, there in product(range(n_pods), range(n_nodes)):
        moved = node.copy()
        moved[pod] = there
        others.append(moved)
    for pod, other in product(range(n_pods), repeat=2):
        exchanged = node.copy()
        exchanged[[pod, other]] = node[[other, pod]]
        others.append(exchanged)
    legal = [one for one in others if is_legal_strictly(release, nodes, node, one)]
    assert all(cost_with(release, nodes, one) >= reached * (1 - 1e-4) for one in legal)


def is_legal_strictly(release: Release, nodes: FilledNodes, before: Ints, after: Ints) -> bool:
    """`is_legal` without anything that rounding decides, and no node filled to the limit by its memory."""
    memory = share_with(release, nodes, after)[:, MEMORY, nodes.point_weights > 0].max(axis=1, initial=0.0)
    changed = np.unique(np.concatenate([before[before != after], after[before != after]]))
    free = free_with(release, nodes, after)[changed]
    enough = (free >= -1e-9) | (free >= free_with(release, nodes, before)[changed])
    return bool(
        is_legal(release, nodes, before, after) and (memory[changed] <= MEMORY_LIMIT - 1e-4).all() and enough.all()
    )


@pytest.mark.parametrize(("looks", "passes"), [(1, 1), (3, 2)])
def test_no_more_is_computed_than_was_asked_for(looks: int, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    curves = [peak_at(int(point), cores) for point, cores in zip(rng.integers(6, size=8), rng.random(8), strict=True)]
    release = release_of(curves, rng.integers(8, size=40).tolist(), rng.integers(5, size=40).tolist())
    nodes = filled(release, cpu_nodes(5), np.full((5, 2), 3.0))
    computed = 0

    def counted(self: _Search, share: Floats32, at: int | Ints) -> Floats:
        nonlocal computed
        computed += len(share)
        return costs(self, share, at)

    costs = _Search._costs
    monkeypatch.setattr(_Search, "_costs", counted)
    node = rearranged(release, nodes, looks=looks, passes=passes)
    assert (node != release.node).any()
    assert 0 < computed <= 2 * looks * passes * 40  # both nodes of each


@pytest.mark.parametrize("seed", range(4))
def test_no_node_has_more_of_a_profile_than_one_had_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    profile, node = rng.integers(0, 4, 24), rng.integers(0, 6, 24)
    curves = [peak_at(int(rng.integers(N_POINTS)), float(rng.uniform(0.2, 1.0))) for _ in range(4)]
    release = release_of(curves, profile.tolist(), node.tolist())
    nodes = filled(release, cpu_nodes(6), np.full((6, 2), 24.0))

    def counts(on: Ints) -> Floats:
        return np.bincount(on * 4 + profile, minlength=24).reshape(6, 4).astype(np.float64)

    after = rearranged(release, replace(nodes, alike=counts(node)))
    assert (after != node).any()
    assert (counts(after).max(axis=0) <= counts(node).max(axis=0)).all()


def test_pods_that_peak_together_are_parted_unless_costs_overflow() -> None:
    release = release_of([peak_at(MORNING)], [0], [0])
    base = np.zeros((2, N_RESOURCES, N_POINTS))
    base[:, CPU] = np.array([[4e7], [8e7]])
    nodes = filled(release, cpu_nodes(2), np.full((2, 2), 10.0), base)
    with np.errstate(over="ignore", invalid="ignore"):
        assert rearranged(release, nodes).tolist() == [0]
    # Two that peak in the morning on one node, two in the evening on the other, and no room for a fifth.
    release = release_of([peak_at(MORNING), peak_at(EVENING)], [0, 0, 1, 1], [0, 0, 1, 1])
    node = rearranged(release, filled(release, cpu_nodes(2), np.zeros((2, 2))))
    assert sorted(node[:2].tolist()) == sorted(node[2:].tolist()) == [0, 1]
    nodes = filled(release, cpu_nodes(2), np.full((2, 2), 9.0))
    assert rearranged(release, nodes, goes_on=lambda: False).tolist() == [0, 0, 1, 1]
    times = iter([True, False])
    once = rearranged(release, nodes, goes_on=lambda: next(times))
    assert int((once != release.node).sum()) in (1, 2)


def test_no_pod_goes_to_a_node_of_unknown_size_or_leaves_it() -> None:
    capacity = cpu_nodes(3)
    capacity[1] = np.nan
    release = release_of([peak_at(MORNING), peak_at(EVENING)], [0, 0, 0, 1], [0, 0, 1, 1])
    nodes = filled(release, capacity, np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 0.0]]))
    node = rearranged(release, nodes)
    assert node[2:].tolist() == [1, 1] and sorted(node[:2].tolist()) == [0, 2]
    without_room = filled(release, capacity, np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 0.0]]))
    assert rearranged(release, without_room).tolist() == release.node.tolist()  # not even in exchange
