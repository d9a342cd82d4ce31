"""What domains hold, against a loop that puts member after member, and against all ways in which they could fit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Ints
from placement.topology.gang_domains import MemberKind, RoomOf, held_by_domain, rooms_left


def kind(number: int, *, cpu: int = 0, devices: int = 0, milli: int = 1000, room: list[int], n: int) -> MemberKind:
    needs = np.array([1, cpu], dtype=np.int64)
    return MemberKind(number, np.array(room, dtype=np.int64), needs, np.full(n, milli, dtype=np.int64), devices)


def nodes(cpu: list[int], free: list[list[int]], domain: list[int], *, pods: int = 100, n_domains: int = 0) -> RoomOf:
    units = np.array([[pods, one] for one in cpu], dtype=np.int64).reshape(len(cpu), 2)
    most = max(map(len, free), default=0)
    padded = [[*devices, *[-1] * (most - len(devices))] for devices in free]
    milli = np.array(padded, dtype=np.int64).reshape(len(cpu), most)
    return RoomOf(units, milli, np.array(domain, dtype=np.int64), n_domains or max(domain, default=-1) + 1)


def test_members_of_one_kind_leave_less_for_the_next() -> None:
    of = nodes([8, 8], [[1000] * 4, [1000] * 5], [0, 1])
    four = kind(1, devices=4, room=[1, 1], n=2)
    half = kind(2, devices=1, milli=500, room=[8, 10], n=2)
    held = held_by_domain([four, half], of)
    assert held.everything.tolist() == [False, True]
    assert held.maybe.tolist() == [True, True], "each alone would fit"


def test_domains_without_nodes_hold_nothing() -> None:
    held = held_by_domain([kind(1, room=[1], n=1)], nodes([8], [[]], [1], n_domains=3))
    assert held.everything.tolist() == [False, True, False]
    nothing = held_by_domain([kind(1, room=[], n=0)], nodes([], [], [], n_domains=2))
    assert not nothing.everything.any() and not nothing.maybe.any()


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[MemberKind], RoomOf]:
    n = draw(st.integers(1, 4))
    few = st.integers(0, 6)
    of = nodes(
        draw(st.lists(few, min_size=n, max_size=n)),
        [draw(st.lists(st.sampled_from([-1, 0, 400, 1000]), min_size=3, max_size=3)) for _ in range(n)],
        draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
        pods=draw(st.integers(1, 5)),
        n_domains=2,
    )
    kinds = []
    for _ in range(draw(st.integers(1, 2))):
        devices = draw(st.integers(0, 2))
        milli = draw(st.sampled_from([200, 400, 1000])) if devices == 1 else 1000
        room = draw(st.lists(few, min_size=n, max_size=n))
        made = kind(draw(st.integers(1, 3)), cpu=draw(st.integers(0, 3)), devices=devices, milli=milli, room=room, n=n)
        kinds.append(made)
    return kinds, of


def slow(kinds: list[MemberKind], of: RoomOf, domain: int) -> tuple[bool, int]:
    """One member after the other, on the first node with room."""
    units, milli = of.units.copy(), of.milli.copy()
    placed = 0
    for one in kinds:
        room = one.room.copy()
        left = one.number
        for node in np.flatnonzero(of.domain == domain).tolist():
            while left and room[node] and (units[node] >= one.needs).all() and take(one, milli[node], node):
                units[node] -= one.needs
                room[node] -= 1
                left -= 1
                placed += 1
    return placed == sum(one.number for one in kinds), placed


def take(one: MemberKind, free: Ints, node: int) -> bool:
    wanted = int(one.milli[node])
    fitting = np.flatnonzero(free >= wanted)[: one.devices]
    if len(fitting) < one.devices:
        return False
    free[fitting] -= wanted
    return True


@settings(max_examples=50)
@given(cases())
def test_it_is_what_a_loop_finds(case: tuple[list[MemberKind], RoomOf]) -> None:
    kinds, of = case
    held = held_by_domain(kinds, of)
    assert held.members.tolist() == [slow(kinds, of, domain)[1] for domain in range(2)]
    assert held.everything.tolist() == [slow(kinds, of, domain)[0] for domain in range(2)]


@settings(max_examples=50)
@given(cases())
def test_where_not_even_maybe_there_is_no_way(case: tuple[list[MemberKind], RoomOf]) -> None:
    kinds, of = case
    held = held_by_domain(kinds, of)
    assert not (held.everything & ~held.maybe).any()
    for domain in range(2):
        if any_way(kinds, of, domain):
            assert held.maybe[domain]


def any_way(kinds: list[MemberKind], of: RoomOf, domain: int) -> bool:
    members = [one for one in kinds for _ in range(one.number)]
    rows = np.flatnonzero(of.domain == domain).tolist()
    for way in product(rows, repeat=len(members)):
        units, milli, rooms = of.units.copy(), of.milli.copy(), {id(one): one.room.copy() for one in kinds}
        for one, node in zip(members, way, strict=True):
            room = rooms[id(one)]
            if not (room[node] and (units[node] >= one.needs).all() and take(one, milli[node], node)):
                break
            units[node] -= one.needs
            room[node] -= 1
        else:
            return True
    return False


@pytest.mark.parametrize(("devices", "milli", "expected"), [(1, 1000, 2), (2, 1000, 1), (1, 400, 5), (0, 1, 9)])
def test_rooms_left(devices: int, milli: int, expected: int) -> None:
    of = nodes([9], [[1000, 400, 1000, 0, -1]], [0])
    one = kind(99, cpu=1, devices=devices, milli=milli, room=[99], n=1)
    assert rooms_left(one, of.units, of.milli).tolist() == [expected]
