"""Pods that claim more than their node used: what is cut, and that no claim lifts the base of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from base.arrays import Bools, Floats, Floats32, Ints
from forecast.fit import fit
from forecast.node_base import fit_node_base
from forecast.peak_weights import fit_peak_weights, pods_felt_by_nodes
from forecast.peak_weights.pods_on_nodes import day_counts
from forecast.resources import CPU, DISK, MEMORY, NETWORK
from forecast.usage_limits import FLEET_FACTOR, Excess, fleet_limits, services_beyond, typical_peaks
from testing.clusters.constructed import constructed
from tests.trainer.history.histories import COLUMNS, Tables, tables
from trainer.history.cleaning import CleaningCause
from trainer.history.files import HistoryFiles

LIAR = 5


def beyond(usage: Floats, node: Ints, service: Sequence[int], own: Floats32, **limits: Floats) -> tuple[Bools, Excess]:
    """Pods that are there all day. own: of the nodes; limits: their capacity, floor and fleet limit, else none."""
    n_nodes = len(own)
    capacity = limits.get("capacity", np.full((n_nodes, 5), np.nan))
    floor = limits.get("floor", np.zeros((n_nodes, 5)))
    fleet = limits.get("fleet", np.full((n_nodes, 5), np.inf))
    everywhere = np.broadcast_to(node[:, None], (len(usage), 48))
    there = np.ones((len(usage), 48))
    return services_beyond(usage, there, everywhere, np.array(service), own, capacity, floor, fleet)


def level(*nodes: float) -> Floats32:
    """What each node uses of everything all day."""
    return np.broadcast_to(np.array(nodes, dtype=np.float32)[:, None, None], (len(nodes), 5, 48))


def test_the_largest_service_is_cut_and_the_others_stay() -> None:
    usage = np.ones((3, 5, 48))
    usage[2, :, 7] = 100.0  # beyond every tolerance
    cut, excess = beyond(usage, np.zeros(3, dtype=np.int64), [0, 0, 1], level(3.0))
    assert cut[2, :, 7].all() and cut.sum() == 5
    assert set(excess.service.tolist()) == {1} and set(excess.slot.tolist()) == {7}
    np.testing.assert_allclose(excess.ratio, 100 / 3)


@pytest.mark.parametrize(
    ("slots_beyond", "gone"), [(3, 3), (4, 48), (48, 48)], ids=["an accident", "two hours", "all day"]
)
def test_a_service_that_is_cut_often_is_cut_for_the_day(slots_beyond: int, gone: int) -> None:
    usage = np.ones((2, 5, 48))
    usage[1, :, :slots_beyond] = 100.0
    cut, excess = beyond(usage, np.zeros(2, dtype=np.int64), [0, 1], level(2.0))
    assert not cut[0].any() and (cut[1].sum(axis=1) == gone).all()
    assert len(excess.slot) == 5 * gone and set(excess.service.tolist()) == {1}


@pytest.mark.parametrize(("capacity", "network_is_cut"), [(np.nan, False), (40.0, False), (12.0, True)])
def test_claims_on_a_busy_node_end_at_its_capacity_where_that_is_known(capacity: float, network_is_cut: bool) -> None:
    usage = np.full((1, 5, 48), 20.0)  # the node itself uses 10: within the tolerance of network, disk and log
    cut, _ = beyond(usage, np.zeros(1, dtype=np.int64), [0], level(10.0), capacity=np.full((1, 5), capacity))
    assert cut[0, NETWORK].all() == cut[0, NETWORK].any() == network_is_cut
    assert cut[0, CPU].all()


def test_a_node_without_measurement_is_bound_by_the_fleet_alone() -> None:
    own = level(2.0, np.nan)
    limit, floor = fleet_limits(typical_peaks(own[:, :, None]), np.full((2, 5), np.nan))
    for times, is_cut in ((1.9, False), (2.1, True)):
        usage = np.full((1, 5, 48), FLEET_FACTOR * times)
        cut, _ = beyond(usage, np.ones(1, dtype=np.int64), [0], own, floor=floor, fleet=limit)
        assert cut.all() == cut.any() == is_cut


def test_a_node_that_measures_too_little_of_itself_convicts_no_service_elsewhere() -> None:
    node = np.tile(np.arange(10), 2)  # two services, a pod of each on every node
    cut, excess = beyond(np.ones((20, 5, 48)), node, [0] * 10 + [1] * 10, level(0.04, *[2.0] * 9))
    assert set(excess.node.tolist()) == {0}
    assert cut[node == 0].all() and not cut[node != 0].any()


@pytest.mark.parametrize(("busiest", "half_hours_lost"), [(1e8, 0), (1e12, 4)], ids=["a backup", "a broken counter"])
def test_a_node_far_busier_than_all_others_is_believed_up_to_a_limit(
    busiest: float, half_hours_lost: int, tmp_path: Path
) -> None:
    """Most machines are idle most of the time: a real backup uses tens of thousands of times the median half hour."""
    found = tables(services={"cart": 4}, days=4, n_nodes=10)
    disk, nodes = COLUMNS[DISK], found.nodes
    found.capacity[COLUMNS] = np.nan
    at_two = (nodes["timestamp"].dt.hour == 2) & (nodes["timestamp"].dt.minute < 30)
    nodes[disk] = np.where(at_two, 1e6, 1e3)
    nodes.loc[at_two & (nodes["node"] == "node-9"), disk] = busiest
    files = HistoryFiles.open(found.write(tmp_path))
    measured = np.isfinite(files.history().node_usage[:, DISK])
    assert measured.size - np.count_nonzero(measured) == half_hours_lost
    assert files.report.total(CleaningCause.BEYOND_FLEET) == half_hours_lost


def lying(factor: float, *, capacity: float) -> Tables:
    found = tables(services={"cart": 4, "db": 2, "liar": 2}, days=4)
    mine = found.usage["service"] == "Deployment/liar"
    found.usage.loc[mine, COLUMNS] *= factor
    found.capacity[COLUMNS] = capacity
    return found


@pytest.mark.parametrize("factor", [30.0, 1e6])
def test_a_lying_service_is_cut_named_and_counted(factor: float, tmp_path: Path) -> None:
    honest = HistoryFiles.open(lying(1.0, capacity=np.nan).write(tmp_path / "honest"))
    known = honest.history()
    assert honest.cut == []
    files = HistoryFiles.open(lying(factor, capacity=np.nan).write(tmp_path / "lying"))
    history = files.history()
    liar = [service.name for service in history.services].index("liar")
    of_liar = [one for one in files.cut if one.service == liar]
    assert {one.resource for one in of_liar} == set(range(5))
    # Where the lie is smaller than an honest service, the latter is cut: nothing says which of both lies.
    assert sum(one.slots for one in of_liar) >= 0.95 * sum(one.slots for one in files.cut)
    assert files.report.total(CleaningCause.BEYOND_NODE) == sum(one.slots for one in files.cut) > 0
    others = [row for row in range(len(history.services)) if row != liar]
    assert (history.usage_per_pod[others] == known.usage_per_pod[others]).mean() > 0.98
    left = np.nan_to_num(history.node_pod_usage / history.node_usage)
    assert left.max() <= 10.5  # ten times, and the floor


def test_pods_exported_at_30_times_lift_no_base() -> None:
    """A factor of 1/30 for all, and pods of one node that went unmeasured: their sum, corrected, fell below 0."""
    history, _ = constructed(n_services=60, n_nodes=30, n_days=14)
    before = fit_node_base(history.node_usage, history.node_pod_usage, history.capacity, history.describe_days())
    usage, pods = history.usage_per_pod.copy(), history.node_pod_usage.copy()
    spared = int(np.bincount(history.placements.node[history.placements.service == LIAR], minlength=30).argmax())
    for day in range(history.n_days):
        runs = history.placements.between(day * 48, day * 48 + 48)
        counts = day_counts(runs, len(history.services), len(history.nodes))
        for resource in (CPU, MEMORY):
            lie = np.zeros((len(history.services), 48), dtype=np.float32)
            lie[LIAR] = 29 * np.nan_to_num(usage[LIAR, resource, day])
            added = (counts @ lie.T.ravel()).reshape(48, -1).T
            added[spared] = 0.0
            pods[:, resource, day] += added
    usage[LIAR, [CPU, MEMORY]] *= 30
    poisoned = replace(history, usage_per_pod=usage, node_pod_usage=pods)
    weights = fit_peak_weights(poisoned)
    assert weights.correction[LIAR, CPU] < 0.1
    felt = pods_felt_by_nodes(poisoned, weights)
    assert np.nanmin(felt) >= 0
    base = fit_node_base(poisoned.node_usage, felt, poisoned.capacity, poisoned.describe_days())
    mean = (poisoned.node_usage.max(axis=(2, 3)))[:, :, None, None]
    assert (base.profile <= 1.001 * mean).all()
    assert (base.profile <= poisoned.capacity[:, :, None, None]).all()
    assert base.profile[spared, MEMORY].mean() < 1.5 * before.profile[spared, MEMORY].mean()


def test_no_base_exceeds_the_capacity() -> None:
    history, _ = constructed(n_services=20, n_nodes=10, n_days=8)
    loud = replace(history, node_usage=history.node_usage * np.float32(100))
    model = fit(loud)
    assert (model.node_base <= 1.0001 * history.capacity[:, :, None, None]).all()
