"""Shards and replicas in rounds: every shard gets one owner, loads even out, and then nothing moves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.shards.assignment import ShardState, even_rooms, to_give, to_take
from scheduler.shards.balance import nodes_to_move

ROOMS = st.lists(st.floats(0.0, 4.0), min_size=1, max_size=24)
NAMES = [f"replica-{i}" for i in range(6)]
CHANGES = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=8)
"""Who joins (True) or dies, one after another."""


@dataclass
class World:
    """Replicas that see the same Leases in each round."""

    shards: list[ShardState]
    members: set[str] = field(default_factory=set)
    moved: int = 0

    def round(self) -> None:
        """All give, then all take."""
        given = {number for me in self.members for number in self._given(me)}
        self.moved += len(given)
        self.shards = [replace(one, holder="") if one.number in given else one for one in self.shards]
        takers = {number: me for me in sorted(self.members) for number in to_take(me, self.members, self.shards)}
        assert sum(len(to_take(me, self.members, self.shards)) for me in self.members) == len(takers), "taken twice"
        self.shards = [replace(one, holder=takers.get(one.number, one.holder)) for one in self.shards]

    def change(self, name: str, joins: bool) -> None:
        if joins:
            self.members.add(name)
        elif len(self.members) > 1:
            self.members.discard(name)
            self.shards = [replace(one, holder="" if one.holder == name else one.holder) for one in self.shards]

    def rest(self) -> None:
        """Go on until nothing is given."""
        for _ in range(100):
            before = self.shards
            self.round()
            if self.shards == before:
                return
        raise AssertionError("shards go to and fro")

    def count(self, name: str) -> int:
        return sum(one.holder == name for one in self.shards)

    def load(self, name: str) -> float:
        return sum(one.room for one in self.shards if one.holder == name)

    def _given(self, me: str) -> list[int]:
        given = to_give(me, self.members, self.shards)
        assert {one.number for one in self.shards if one.holder == me} >= set(given)
        return given


def world_of(rooms: list[float], members: set[str]) -> World:
    even = even_rooms(dict(enumerate(rooms)))
    return World([ShardState(number, "", room) for number, room in even.items()], set(members))


@given(rooms=ROOMS, changes=CHANGES)
def test_every_shard_has_one_live_owner_and_nothing_moves_at_rest(
    rooms: list[float], changes: list[tuple[str, bool]]
) -> None:
    world = world_of(rooms, {NAMES[0]})
    for name, joins in changes:
        world.change(name, joins)
        world.round()  # the next change comes before all is at rest
        assert all(one.holder in world.members for one in world.shards)
    world.rest()
    moved = world.moved
    world.round()
    assert world.moved == moved
    assert all(one.holder in world.members for one in world.shards)


@given(rooms=ROOMS, members=st.sets(st.sampled_from(NAMES), min_size=2))
def test_at_rest_no_move_of_a_shard_would_gain_a_quarter_of_its_room(rooms: list[float], members: set[str]) -> None:
    world = world_of(rooms, {min(members)})
    world.rest()
    world.members = members
    world.rest()
    least = min(world.load(name) for name in members)
    for name in members:
        mine = sorted(one.room for one in world.shards if one.holder == name)
        assert all(least + 1.25 * room >= world.load(name) - 1e-9 for room in mine[1:])


def test_rooms_become_even_around_one_and_a_full_shard_keeps_a_little() -> None:
    assert even_rooms({0: 2.0, 1: 1.0, 2: 0.0}) == {0: 2.0, 1: 1.0, 2: 0.1}
    assert even_rooms({0: 0.0, 3: 0.0}) == {0: 1.0, 3: 1.0}
    assert even_rooms({}) == {}


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
