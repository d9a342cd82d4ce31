"""A history without some services is as if their pods had never been on its nodes."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import numpy as np

from forecast.history import EarlierDays, History
from forecast.job_runs import JobRuns
from forecast.resources import CPU, DISK, RESOURCES
from tests.scorer.replay.small_cluster import AUTOSCALED, N_DAYS, N_SERVICES, small_cluster


def _only(history: History, kept: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """CPU of the pods of some services on each node: (n_nodes, n_slots)."""
    runs, slots = history.placements, np.arange(N_DAYS * 48)
    found = np.zeros((len(history.nodes), len(slots)))
    for pod in np.flatnonzero(np.isin(runs.service, kept)):
        present = (slots >= runs.first[pod]) & (slots < runs.end[pod])
        found[runs.node[pod]] += present * history.usage_per_pod[runs.service[pod], CPU].reshape(-1)
    return found


def test_nodes_lose_what_the_pods_of_these_services_used() -> None:
    history = small_cluster()[0]
    out = np.isin(np.arange(N_SERVICES), [1, AUTOSCALED])
    left = history.without(out)
    assert left.services == tuple(history.services[row] for row in (0, 2, 3))
    of_pods = left.node_pod_usage[:, CPU].reshape(len(left.nodes), -1)
    np.testing.assert_allclose(of_pods, _only(history, [0, 2, 3]), rtol=1e-4, atol=1e-4)
    beside = history.node_usage - history.node_pod_usage
    np.testing.assert_allclose((left.node_usage - left.node_pod_usage)[:, CPU], beside[:, CPU], atol=1e-4)
    np.testing.assert_array_equal(left.usage_per_pod, history.usage_per_pod[[0, 2, 3]])
    assert set(left.placements.service.tolist()) == {0, 1, 2}
    assert left.daily_requests.shape[0] == left.replicas.shape[0] == left.pod_variance.shape[0] == 3


def test_what_was_not_measured_of_them_stays_a_part_of_the_node() -> None:
    history = small_cluster()[0]
    unmeasured = history.usage_per_pod.copy()
    unmeasured[:, DISK] = np.nan
    left = replace(history, usage_per_pod=unmeasured).without(np.arange(N_SERVICES) == 0)
    np.testing.assert_array_equal(left.node_usage[:, DISK], history.node_usage[:, DISK])


def test_without_none_nothing_changes() -> None:
    history = small_cluster()[0]
    same = history.without(np.zeros(N_SERVICES, dtype=np.bool_))
    for field in fields(History):
        one, other = getattr(history, field.name), getattr(same, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)


def test_runs_and_earlier_days_stay_those_of_the_services_that_are_kept() -> None:
    history, service = small_cluster()[0], np.array([0, 1, 3])
    n_days, n_resources = 2, len(RESOURCES)
    usage = np.arange(3.0, dtype=np.float32).reshape(3, 1, 1, 1) + np.zeros((3, n_resources, n_days, 48), np.float32)
    earlier = EarlierDays(
        days=tuple(history.days[0] - timedelta(days=back) for back in (2, 1)),
        service=service,
        usage_per_pod=usage,
        replicas=usage[:, 0],
        pod_variance=usage,
        daily_requests=usage[:, :2, :, 0].astype(np.float64),
    )
    is_open = np.array([[False, False], [False, True], [True, False]])
    runs = JobRuns(service, np.array([10, 20, 30]), np.array([1, 2, 3], dtype=np.float32), is_open)
    out = np.arange(N_SERVICES) == 1
    left = replace(history, earlier=earlier, runs=runs).without(out)
    assert left.earlier is not None
    assert [left.services[row] for row in left.earlier.service] == [history.services[row] for row in (0, 3)]
    np.testing.assert_array_equal(left.earlier.usage_per_pod, usage[[0, 2]])
    np.testing.assert_array_equal(left.earlier.replicas, usage[[0, 2], 0])
    assert [left.services[row] for row in left.runs.service] == [history.services[row] for row in (0, 3)]
    np.testing.assert_array_equal(left.runs.seconds, [1.0, 3.0])
    np.testing.assert_array_equal(left.runs.open, is_open[[0, 2]])
    moved = replace(history, earlier=earlier).without(np.isin(np.arange(N_SERVICES), service))
    assert moved.earlier is None
