from __future__ import annotations

import asyncio

import pytest

from serving.body_budget import (
    FREE_BYTES,
    LARGE_BODY,
    LARGE_VALUES,
    BodyBudget,
    Dropped,
    HeldBody,
    json_values,
    off_loop,
)
from tests.serving.event_loop import in_loop

MOST = 1_000_000


class _Peers:
    """Bodies of a budget; `given_up` are those that had to give way while they waited."""

    def __init__(self) -> None:
        self.budget = BodyBudget(MOST)
        self.given_up: list[str] = []

    def open(self, name: str, peer: str) -> HeldBody:
        return self.budget.open(peer, lambda: self.given_up.append(name))

    def filled(self, name: str, peer: str, size: int) -> HeldBody:
        held = self.open(name, peer)
        self.budget.grow(held, size)
        return held


@in_loop
async def test_the_peer_that_holds_most_gives_way() -> None:
    peers = _Peers()
    small = [peers.filled(f"small {number}", "a", MOST // 2) for number in range(3)]
    peers.filled("large", "a", MOST)
    peers.filled("other", "b", MOST)
    peers.filled("one more", "a", MOST - 2)
    peers.filled("too much", "a", MOST - 1)
    assert peers.given_up == ["large"]
    assert not any(one.dropped for one in small)
    peers = _Peers()
    await peers.budget.turn(peers.filled("at work", "a", 1), large=False)
    for name, peer in (("b0", "b"), ("a0", "a"), ("a1", "a")):
        peers.filled(name, peer, 1)
    assert peers.budget.make_place() and peers.given_up == ["a0"] and peers.budget.leaving == 1
    assert peers.budget.make_place() and peers.budget.make_place()
    assert not peers.budget.make_place()


@in_loop
async def test_a_body_in_line_makes_place_for_a_request() -> None:
    budget, given_up = BodyBudget(MOST), []
    await budget.turn(budget.open("a", lambda: None), large=True)
    waiting = asyncio.ensure_future(budget.turn(budget.open("a", lambda: given_up.append("a")), large=True))
    await asyncio.sleep(0)
    assert budget.make_place() and given_up == ["a"]
    assert not budget.make_place()
    waiting.cancel()


@in_loop
async def test_where_all_is_used_up_those_that_hold_the_most_give_way_to_others() -> None:
    peers = _Peers()
    for number in range(4):
        peers.filled(f"a{number}", "a", MOST)
        peers.filled(f"b{number}", "b", MOST - 1)
    assert not peers.given_up
    for number in range(40):
        peers.filled(f"c{number}", "c", FREE_BYTES + 20_000)
    assert peers.given_up and not any(name.startswith("c") for name in peers.given_up)
    assert peers.budget.held_bytes <= 8 * MOST


@in_loop
async def test_bodies_at_work_stay_and_the_one_that_grows_gives_way() -> None:
    peers = _Peers()
    at_work = [peers.filled(f"{number}", "a", LARGE_BODY) for number in range(20)]
    for one in at_work:
        await peers.budget.turn(one, large=False)
    late = peers.open("late", "a")
    with pytest.raises(Dropped):
        peers.budget.grow(late, 3 * MOST)
    assert late.dropped and not peers.given_up
    with pytest.raises(Dropped):
        peers.budget.grow(late, 1)
    for one in (*at_work, late, late):
        peers.budget.release(one)
    assert peers.budget.held_bytes == 0


@in_loop
async def test_of_large_bodies_one_is_at_work_at_a_time_and_peers_take_turns() -> None:
    budget, order = BodyBudget(MOST), []

    async def work(peer: str, size: int) -> None:
        held = budget.open(peer, lambda: None)
        budget.grow(held, size)
        await budget.turn(held, large=True)
        order.append(f"{peer}{size - LARGE_BODY}")
        await asyncio.sleep(0)
        assert sum(one.at_work for one in budget._held) == 1
        budget.release(held)

    asked = [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 900), ("b", 800), ("c", 5)]
    await asyncio.gather(*(work(peer, LARGE_BODY + extra) for peer, extra in asked))
    assert order == ["a1", "a2", "b900", "c5", "a3", "b800", "a4"]


@in_loop
async def test_who_leaves_the_line_passes_its_turn_on() -> None:
    budget = BodyBudget(MOST)
    held = [budget.open("a", lambda: None) for _ in range(3)]
    for one in held:
        budget.grow(one, LARGE_BODY + 1)
    await budget.turn(held[0], large=True)
    waiting = [asyncio.ensure_future(budget.turn(one, large=True)) for one in held[1:]]
    await asyncio.sleep(0)
    budget.release(held[0])  # the turn of the second comes
    waiting[0].cancel()  # as it leaves
    await asyncio.gather(waiting[0], return_exceptions=True)
    budget.release(held[1])
    await asyncio.wait_for(waiting[1], 1)
    assert held[2].at_work


@in_loop
async def test_large_bodies_are_worked_on_beside_the_event_loop() -> None:
    import threading

    loops = threading.get_ident()
    assert await off_loop(b" " * LARGE_BODY, threading.get_ident) == loops
    assert await off_loop(b" " * (LARGE_BODY + 1), threading.get_ident) != loops
    assert await off_loop(b"{}," * (LARGE_VALUES // 2), threading.get_ident) == loops
    assert await off_loop(b"{}," * (LARGE_VALUES // 2 + 1), threading.get_ident) != loops


@pytest.mark.parametrize(("body", "values"), [(b"5", 0), (b'[1,{"a":2}]', 3), (b'{"a":[],"b":{}}', 4)])
def test_values_of_a_body_are_counted(body: bytes, values: int) -> None:
    assert json_values(body) == values
