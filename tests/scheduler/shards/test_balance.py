"""Nodes that go from shards with much room to those with little: never too many, and only own ones."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.shards.shard_room import nodes_to_move

COUNT = 6
NODES = st.lists(st.tuples(st.integers(0, COUNT - 1), st.floats(0.0, 1.0)), min_size=1, max_size=60)
MINE = st.sets(st.integers(0, COUNT - 1))


def rooms_of(nodes: list[tuple[int, float]]) -> dict[int, float]:
    return {number: sum(room for shard, room in nodes if shard == number) for number in range(COUNT)}


def moves_of(nodes: list[tuple[int, float]], mine: set[int], *, most: int = 20) -> list[tuple[int, int]]:
    """Rows that replicas with these shards would move; the row of a node is its place in the list."""
    rows = [row for row, (shard, _) in enumerate(nodes) if shard in mine]
    return nodes_to_move(
        rooms_of(nodes),
        sorted(mine),
        np.array(rows, dtype=np.int64),
        np.array([nodes[row][0] for row in rows], dtype=np.int64),
        np.array([nodes[row][1] for row in rows]),
        most_difference=0.1,
        most=most,
    )


@given(nodes=NODES, mine=MINE, most=st.integers(0, 10))
def test_only_own_nodes_move_at_most_so_many_and_each_once(
    nodes: list[tuple[int, float]], mine: set[int], most: int
) -> None:
    moves = moves_of(nodes, mine, most=most)
    rows = [row for row, _ in moves]
    assert len(rows) == len(set(rows)) <= most
    assert all(nodes[row][0] in mine and nodes[row][0] != to for row, to in moves)


@given(nodes=NODES, mine=MINE)
def test_no_move_overshoots(nodes: list[tuple[int, float]], mine: set[int]) -> None:
    """After each move the shard that gave has at least as much as the one that took."""
    left = rooms_of(nodes)
    mean = sum(left.values()) / COUNT
    for row, to in moves_of(nodes, mine, most=1000):
        shard, room = nodes[row]
        assert left[shard] > mean * 1.1
        left[shard] -= room
        left[to] += room
        assert left[shard] >= left[to] - 1e-9


@given(nodes=NODES)
def test_rounds_of_all_replicas_end(nodes: list[tuple[int, float]]) -> None:
    """One replica after another, until none moves anything."""
    nodes, shares = list(nodes), [{0, 1}, {2, 3, 4}, {5}]
    for _ in range(100):
        moved = 0
        for mine in shares:
            for row, to in moves_of(nodes, mine, most=5):
                nodes[row] = to, nodes[row][1]
                moved += 1
        if not moved:
            return
    raise AssertionError("nodes go to and fro")
