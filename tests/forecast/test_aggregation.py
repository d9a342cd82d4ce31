"""The reduction of pods to services and nodes against plain loops."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from forecast.aggregation import HistoryBuilder, NodeTable, PodTable, PodWindow
from forecast.calendar import Calendar
from forecast.history import History
from forecast.service_key import ServiceKey

N_NODES = 3


def tables_of(service: list[int]) -> tuple[PodTable, NodeTable]:
    pods = PodTable(
        pods=tuple(f"shop/pod-{i}" for i in range(len(service))),
        services=tuple(ServiceKey("shop", "Deployment", f"s{i}") for i in range(max(service) + 1)),
        service=np.array(service),
        requests=np.column_stack([np.arange(1.0, len(service) + 1), np.full(len(service), np.nan)]),
    )
    nodes = NodeTable(
        tuple(f"node-{i}" for i in range(N_NODES)),
        capacity=np.full((N_NODES, 5), 8.0),
        allocatable=np.full((N_NODES, 2), np.nan),
    )
    return pods, nodes


def random_window(rng: np.random.Generator, n_pods: int, n_days: int) -> PodWindow:
    usage = rng.uniform(0, 4, (n_pods, 5, n_days, 48)).astype(np.float32)
    usage[rng.random(usage.shape) < 0.2] = np.nan
    present = rng.choice([0.0, 1 / 3, 0.5, 1.0], (n_pods, n_days, 48), p=[0.2, 0.1, 0.1, 0.6]).astype(np.float32)
    usage[np.broadcast_to(present[:, None] == 0, usage.shape)] = np.nan
    any_data = rng.random((n_days, 48)) < 0.95
    present[:, ~any_data] = 0
    usage[:, :, ~any_data] = np.nan
    node = rng.integers(-1, N_NODES, (n_pods, 1, 1)) * np.ones((1, n_days, 48), dtype=np.int64)
    node[rng.random(node.shape) < 0.05] = 0
    node[present == 0] = -1
    return PodWindow(0, np.arange(n_pods), usage, present, node.astype(np.int32), any_data)


def part_of(window: PodWindow, begin: int, end: int) -> PodWindow:
    """The days begin..end, without the pods that were never there in them."""
    days = slice(begin, end)
    here = np.flatnonzero((window.present[:, days] > 0).any(axis=(1, 2)))
    return PodWindow(
        begin,
        window.pod[here],
        window.usage[here, :, days],
        window.present[here, days],
        window.node[here, days],
        window.any_data[days],
    )


def build(service: list[int], window: PodWindow, cuts: list[int], requests: Floats | None = None) -> History:
    pods, nodes = tables_of(service)
    pods = pods if requests is None else replace(pods, requests=requests)
    n_days = window.any_data.shape[0]
    days = tuple(date(2026, 3, 2) + timedelta(days=i) for i in range(n_days))
    builder = HistoryBuilder(Calendar(), days, pods, nodes)
    for begin, end in pairwise([0, *cuts, n_days]):
        builder.add_pods(part_of(window, begin, end))
    return builder.finish()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.booleans())
def test_services_and_nodes_are_what_plain_loops_give(seed: int, cut: bool) -> None:
    rng = np.random.default_rng(seed)
    service = sorted(rng.integers(0, 3, 6).tolist())
    window = random_window(rng, len(service), 2)
    history = build(service, window, [1] if cut else [])
    for day in range(2):
        for slot in range(0, 48, 5):
            data = bool(window.any_data[day, slot])
            for s in range(len(history.services)):
                pods = [p for p in range(len(service)) if service[p] == s]
                replicas = sum(window.present[p, day, slot] for p in pods) if data else np.nan
                assert history.replicas[s, day, slot] == pytest.approx(replicas, nan_ok=True)
                for r in range(5):
                    pairs = [(window.usage[p, r, day, slot], window.present[p, day, slot]) for p in pods]
                    pairs = [(u, w) for u, w in pairs if np.isfinite(u)]
                    mean = sum(u * w for u, w in pairs) / sum(w for _, w in pairs) if pairs else np.nan
                    assert history.usage_per_pod[s, r, day, slot] == pytest.approx(mean, rel=1e-5, nan_ok=True)
                    mostly = [u for u, w in pairs if w >= 0.5]
                    variance = np.var(mostly, ddof=1) if len(mostly) >= 2 else np.nan
                    assert history.pod_variance[s, r, day, slot] == pytest.approx(
                        variance, rel=1e-4, abs=1e-6, nan_ok=True
                    )
            for n in range(N_NODES):
                pods = [p for p in range(len(service)) if window.node[p, day, slot] == n]
                for r in range(5):
                    loads = [window.usage[p, r, day, slot] * window.present[p, day, slot] for p in pods]
                    loads = [load for load in loads if np.isfinite(load)]
                    total = np.nan if not data or (pods and not loads) else sum(loads)
                    assert history.node_pod_usage[n, r, day, slot] == pytest.approx(total, rel=1e-5, nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_runs_say_where_every_pod_was(seed: int) -> None:
    rng = np.random.default_rng(seed)
    service = [0, 0, 1, 1]
    window = random_window(rng, len(service), 3)
    for cuts in ([], [1], [1, 2]):
        runs = build(service, window, cuts).placements
        found = np.full((len(service), 3 * 48), -1)
        for pod, node, first, end in zip(runs.pod, runs.node, runs.first, runs.end, strict=True):
            assert (found[pod, first:end] == -1).all(), "runs of a pod overlap"
            found[pod, first:end] = node
        assert runs.service.tolist() == [service[pod] for pod in runs.pod]
        flat = np.where(window.present >= 0.5, window.node, -1).reshape(len(service), -1)
        data = window.any_data.ravel()
        # Slots without data are bridged where the pod is on the same node before and after.
        np.testing.assert_array_equal(found[:, data], flat[:, data])


def test_a_large_mean_does_not_drown_the_variance() -> None:
    window = PodWindow(
        0,
        np.arange(2),
        np.stack([np.full((5, 1, 48), 4e9), np.full((5, 1, 48), 4e9 + 2048)]).astype(np.float32),
        np.ones((2, 1, 48), dtype=np.float32),
        np.zeros((2, 1, 48), dtype=np.int32),
        np.ones((1, 48), dtype=np.bool_),
    )
    assert build([0, 0], window, []).pod_variance[0, 1, 0, 0] == pytest.approx(2048**2 / 2)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.integers(1, 4))
def test_requests_are_the_mean_over_the_pods_of_the_last_day_that_tells(seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    service = sorted(rng.integers(0, 3, 6).tolist())
    pods, _ = tables_of(service)
    pods.requests[rng.random(pods.requests.shape) < 0.3] = np.nan
    window = random_window(rng, len(service), 5)
    window.present[rng.random((len(service), 5)) < 0.6] = 0
    known = build(service, window, [2], pods.requests).before(cut)
    for s in range(len(known.services)):
        for column in range(2):
            expected = np.nan
            for day in range(cut):
                there = [p for p in range(len(service)) if service[p] == s and window.present[p, day].any()]
                values = [pods.requests[p, column] for p in there if np.isfinite(pods.requests[p, column])]
                expected = np.mean(values) if values else expected
            assert known.requests[s, column] == pytest.approx(expected, nan_ok=True)
    # Days that are dropped at the beginning take no knowledge with them.
    np.testing.assert_array_equal(known.before(cut, keep=1).requests, known.requests)


@pytest.mark.parametrize("keep", [None, 2])
def test_pods_after_the_cut_change_nothing_before_it(keep: int | None) -> None:
    rng, service, cut = np.random.default_rng(7), [0, 0, 1, 1, 2], 3
    first = random_window(rng, len(service), 5)
    # Pods 0 and 2 live before the cut, 1 and 3 after it; service 2 is born after it.
    for pods, days in (([0, 2], slice(cut, None)), ([1, 3, 4], slice(None, cut))):
        first.present[pods, days], first.usage[pods, :, days], first.node[pods, days] = 0, np.nan, -1
    requests = tables_of(service)[0].requests
    requests[:, 1] = 1e9
    later = random_window(rng, len(service), 5)
    later.usage[:, :, :cut] = first.usage[:, :, :cut]
    for name in ("present", "node", "any_data"):
        getattr(later, name)[..., :cut, :] = getattr(first, name)[..., :cut, :]
    other = requests.copy()
    other[[1, 3, 4]] *= 10

    one = build(service, first, [cut], requests).before(cut, keep=keep)
    two = build(service, later, [cut], other).before(cut, keep=keep)
    for field in fields(History):
        if field.name not in ("placements", "runs"):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name), err_msg=field.name)
    for table, other_table in ((one.placements, two.placements), (one.runs, two.runs)):
        for name in (field.name for field in fields(table)):
            np.testing.assert_array_equal(getattr(table, name), getattr(other_table, name))
    np.testing.assert_array_equal(one.requests, [[1.0, 1e9], [3.0, 1e9], [np.nan, np.nan]])
    assert np.isfinite(build(service, first, [cut], requests).requests).all(), "all are known in the end"


def test_days_without_any_window_are_no_data() -> None:
    pods, nodes = tables_of([0])
    history = HistoryBuilder(Calendar(), (date(2026, 3, 2),), pods, nodes).finish()
    assert np.isnan(history.replicas).all()
    assert np.isnan(history.node_usage).all()
    assert len(history.placements.pod) == 0
    np.testing.assert_allclose(history.allocatable, 8.0)
