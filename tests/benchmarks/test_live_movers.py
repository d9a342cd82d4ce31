"""The rules of other tools, on clusters where one can count what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.movers.low_node_load import LowNodeLoad, per_workload
from benchmarks.movers.low_node_utilization import LowNodeUtilization
from benchmarks.movers.relieve_and_migrate import RelieveAndMigrate, combined_deviation, cools_down
from benchmarks.trajectories import OTHERS
from forecast.resources import CPU as CPU_COLUMN
from rebalancer.trajectory.play import Mover, PlayedMove
from rebalancer.trajectory.trajectories import UNTOUCHED
from scorer.replay.recording import Recording
from scorer.replay.replay_rules import Native
from scorer.replay.running_cluster import RunningCluster
from tests.rebalancer.trajectory.played import played
from tests.rebalancer.trajectory.tiny_recording import tiny_recording


def evicted(
    recording: Recording, mover: Mover, slot: int = 1, past: Mapping[int, Sequence[PlayedMove]] | None = None
) -> list[int]:
    """Pods that the mover evicts in a slot, everything where it was recorded."""
    cluster = RunningCluster(recording, Native(np.random.default_rng(0)))
    for pod, node in enumerate(recording.first_node.tolist()):
        cluster.put(pod, node, 0)
    if slot:
        cluster.measure(slot - 1)
    relocations = mover.relocate(slot, cluster, past or {})
    assert all(one.target is None for one in relocations), "live movers choose no target"
    return [one.pod for one in relocations]


# Node 0 uses 9 of 10 cores, node 1 uses 8.5, node 2 uses 1 and node 3 uses 6.
CPU = [4.0, 3.0, 2.0, 5.0, 3.5, 1.0, 6.0]
NODE = [0, 0, 0, 1, 1, 2, 3]


def test_low_node_utilization_evicts_one_pod_of_each_node_above_80_percent() -> None:
    pods = evicted(tiny_recording(CPU, NODE, n_nodes=4), LowNodeUtilization(tiny_recording(CPU, NODE, n_nodes=4), 0))
    assert [NODE[pod] for pod in pods] == [0, 1], "the fullest node first"


@pytest.mark.parametrize(
    "cpu",
    [
        [4.0, 3.0, 2.0, 5.0, 3.5, 6.0, 6.0],  # none is under-utilized
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],  # all are
        [4.0, 2.0, 1.0, 5.0, 2.5, 1.0, 6.0],  # none is over-utilized
    ],
)
def test_movers_by_thresholds_do_nothing_without_both_kinds_of_nodes(cpu: Sequence[float]) -> None:
    recording = tiny_recording(cpu, NODE, n_nodes=4)
    assert not evicted(recording, LowNodeUtilization(recording, 0))
    assert not evicted(recording, LowNodeLoad(recording))


def test_low_node_load_evicts_the_largest_pods_until_the_node_is_below_the_threshold() -> None:
    recording = tiny_recording(CPU, NODE, n_nodes=4)
    # Node 2 has room for 7 cores below 80 %. In their order, pods 0 (4) and 1 (3) take it; 2 (2), 3 and 4 do not fit.
    assert evicted(recording, LowNodeLoad(recording)) == [0]


def test_low_node_load_counts_head_room_in_cores_where_nodes_are_unequal() -> None:
    # Three nodes of 10 cores use 9, and one of 120 cores uses 48: it has room for 48 more below 80 %.
    recording = tiny_recording([3.0] * 9 + [48.0], [0] * 3 + [1] * 3 + [2] * 3 + [3], n_nodes=4)
    recording.capacity[3, CPU_COLUMN] = 120.0
    recording.allocatable[3, CPU_COLUMN] = 120.0
    assert len(evicted(recording, LowNodeLoad(recording))) == 3


def test_low_node_load_spares_workloads() -> None:
    cpu, node = [1.0] * 12 + [0.5] * 3, [0] * 12 + [1, 2, 3]
    recording = tiny_recording(cpu, node, n_nodes=4, service=[0, 0, 0, *range(1, 10), 10, 11, 12])
    pods = evicted(recording, LowNodeLoad(recording))
    assert sum(pod < 3 for pod in pods) <= per_workload(3) == 1
    alone = tiny_recording(cpu, node, n_nodes=4)
    assert len(evicted(alone, LowNodeLoad(alone))) == 2, "of one node at once"
    assert [per_workload(n) for n in (1, 3, 4, 10, 11, 20, 35)] == [1, 1, 2, 2, 1, 2, 3]


def test_low_node_load_leaves_pods_that_fit_nowhere_by_request() -> None:
    recording = tiny_recording(CPU, NODE, n_nodes=4, requests=9.5)
    assert not evicted(recording, LowNodeLoad(recording))


def test_relieve_and_migrate_evicts_two_of_a_node_and_five_in_all() -> None:
    cpu = [2.0] * 16 + [0.2] * 6
    node = [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4, 5, 6, 7, 8, 9]
    recording = tiny_recording(cpu, node, n_nodes=10)
    pods = evicted(recording, RelieveAndMigrate(recording, 0))
    assert len(pods) == 5
    assert max(np.bincount([node[pod] for pod in pods])) == 2


def test_relieve_and_migrate_leaves_pods_alone_that_cool_down_and_takes_others() -> None:
    recording = tiny_recording([2.0] * 4 + [0.2], [0] * 4 + [1], n_nodes=2, n_slots=8)
    # A third migration within 48 hours: an hour of rest.
    past = {pod: [PlayedMove(0, 1, slot) for slot in (1, 3, 5)] for pod in (0, 1, 2)}
    assert evicted(recording, RelieveAndMigrate(recording, 0), slot=6, past=past) == [3]
    assert len(evicted(recording, RelieveAndMigrate(recording, 0), slot=7, past=past)) == 2


@pytest.mark.parametrize(("migrations", "slots"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 4), (5, 8), (6, 12), (20, 12)])
def test_a_migration_is_followed_by_a_rest_that_doubles(migrations: int, slots: int) -> None:
    moves = [PlayedMove(0, 0, slot) for slot in range(migrations)]
    last = migrations - 1
    rests = [cools_down(moves, last + after) for after in range(1, 15)]
    assert rests == [after < slots for after in range(1, 15)]


def test_migrations_of_48_hours_ago_do_not_count() -> None:
    early = [PlayedMove(0, 0, slot) for slot in range(5)]
    last = PlayedMove(2, 0, slot=4 + 96)
    assert not cools_down([*early, last], last.slot + 1)
    assert cools_down([*early, replace(last, slot=4 + 80)], 4 + 80 + 1)


def test_relieve_and_migrate_looks_at_memory_too_and_at_deviations_only() -> None:
    share = np.array([[0.9, 0.5], [0.9, 0.5]])
    np.testing.assert_array_equal(combined_deviation(share), [0.0, 0.0])
    share = np.array([[0.5, 0.5], [0.5, 0.3]])
    np.testing.assert_allclose(combined_deviation(share), [0.3, 0.0])
    assert combined_deviation(np.array([[1.0, 1.0], [0.0, 0.0]]))[0] == 1.0


def test_runs_of_jobs_are_not_evicted() -> None:
    recording = tiny_recording(CPU, NODE, n_nodes=4)
    recording.ending[:] = True
    for mover in (LowNodeUtilization(recording, 0), LowNodeLoad(recording), RelieveAndMigrate(recording, 0)):
        assert not evicted(recording, mover)


@pytest.mark.parametrize("name", OTHERS)
def test_a_mover_does_not_know_what_comes_later(name: str) -> None:
    """Evicted in slot 1 are the same pods, whatever is used from then on."""
    as_it_was, otherwise = (tiny_recording(CPU, NODE, n_nodes=4, n_slots=4) for _ in range(2))
    otherwise.load[..., 1:] = otherwise.load[::-1, ..., 1:] * 3
    first, second = (evicted(recording, OTHERS[name](recording, 0)) for recording in (as_it_was, otherwise))
    assert first == second
    assert first, "nothing moves, so nothing is compared"


def test_trajectories_play_other_movers_in_addition() -> None:
    first, second = (played(days=1, seed=seed, rules=[UNTOUCHED], others=OTHERS) for seed in (1, 2))
    assert list(first.by_rule) == [UNTOUCHED, *OTHERS]
    assert first.by_rule["low_node_utilization"].moves != second.by_rule["low_node_utilization"].moves
