"""Shards and replicas in rounds: every shard gets one owner, loads even out, and then nothing moves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from scheduler.shards.assignment import ShardState, even_rooms, to_give, to_take

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
