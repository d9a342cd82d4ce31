from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoscaling.capacity.node_pool import RecordedPool, chosen_group, node_groups, on_nodes
from base.errors import InputError
from scorer.replay.recording import Recording
from tests.rebalancer.trajectory.tiny_recording import tiny_recording


def mixed() -> Recording:
    """Two nodes of 40 cores, then six of 10; memory in GiB."""
    recording = tiny_recording([1.0, 2.0], [-1, -1], n_nodes=8)
    size = np.repeat([4.0, 1.0], [2, 6])[:, None]
    capacity = recording.capacity * size
    capacity[:, 1] = 2.0**33 * size[:, 0]
    return replace(
        recording,
        capacity=capacity,
        allocatable=capacity[:, :2] * 0.97,
        base=np.broadcast_to(np.arange(8.0)[:, None, None], recording.base.shape),
        live_base=np.broadcast_to(np.arange(8.0)[:, None], recording.live_base.shape),
    )


def test_groups_are_shapes_named_by_cores_and_memory_the_most_frequent_first() -> None:
    groups = node_groups(mixed())
    assert [(group.name, group.rows.tolist()) for group in groups] == [
        ("10 cores, 8 GiB", [2, 3, 4, 5, 6, 7]),
        ("40 cores, 32 GiB", [0, 1]),
    ]


def test_a_few_pages_of_memory_make_no_group_and_another_disk_does() -> None:
    recording = mixed()
    allocatable = recording.allocatable.copy()
    allocatable[2:, 1] -= np.arange(6) * 4096
    assert len(node_groups(replace(recording, allocatable=allocatable))) == 2
    capacity = recording.capacity.copy()
    capacity[2:4, 2] = 1e6
    names = [group.name for group in node_groups(replace(recording, capacity=capacity))]
    assert names == ["10 cores, 8 GiB #1", "40 cores, 32 GiB", "10 cores, 8 GiB #2"]


def test_a_larger_cluster_holds_the_smaller_one_and_keeps_the_proportion() -> None:
    pool = RecordedPool(node_groups(mixed()))
    for n_nodes in range(1, 30):
        rows = pool.rows(n_nodes)
        assert rows.tolist() == pool.rows(30)[:n_nodes].tolist()
        small = pool.mix(n_nodes)["10 cores, 8 GiB"]
        assert abs(small - 0.75 * n_nodes) <= 1
    assert sorted(pool.rows(8).tolist()) == list(range(8))
    assert pool.mix(16) == {"10 cores, 8 GiB": 12, "40 cores, 32 GiB": 4}


def test_one_group_alone_makes_all_nodes() -> None:
    recording = mixed()
    pool = RecordedPool((chosen_group(node_groups(recording), "40 cores, 32 GiB"),))
    there = on_nodes(recording, pool.rows(5))
    assert there.capacity[:, 0].tolist() == [40.0] * 5
    assert there.base[:, 0, 0].tolist() == [0, 1, 0, 1, 0]
    assert there.n_nodes == 5 and (there.first_node == -1).all()
    with pytest.raises(InputError, match="choose '10 cores, 8 GiB', '40 cores, 32 GiB'"):
        chosen_group(node_groups(recording), "large")
