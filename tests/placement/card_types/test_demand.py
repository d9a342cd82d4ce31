from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import PodInfo, PodPhase
from placement.card_types.card_demand import CardDemand
from placement.card_types.card_type_requests import CardTypeRequest
from tests.placement.card_types.card_world import CardWorld, typed
from tests.placement.devices.device_world import card_node

NODES = [card_node("a", 8, model="A100"), card_node("t", 8, model="T4")]
HOUR = 3600.0


def wanted(demand: CardDemand) -> dict[CardTypeRequest, tuple[int, int]]:
    """What sits and what waits, of what there is."""
    return {one.wish: (one.sitting, one.waiting) for one in demand.wanted() if one.now}


def recent(world: CardWorld, *required: str) -> float:
    """Of pods that require these types."""
    found = [one for one in world.demand.wanted() if one.wish == CardTypeRequest(required)]
    return sum(one.recent(world.now, world.card_options.half_life) for one in found)


def test_pods_count_that_name_types_and_want_cards() -> None:
    pods = [
        typed("waits", "A100", n=2),
        typed("sits", "A100", n=3, node="a", phase=PodPhase.RUNNING),
        typed("two", "A100,T4"),
        typed("any"),
        typed("prefers", preferred="A100"),
        typed("no-card", "A100", n=0),
        typed("gated", "A100", gates=("wait",)),
        typed("going", "A100", terminating=True),
        typed("ended", "A100", node="a", phase=PodPhase.SUCCEEDED),
    ]
    world = CardWorld(NODES, pods)
    expected = {CardTypeRequest(("A100",)): (3000, 2000), CardTypeRequest(("A100", "T4")): (0, 1000)}
    assert wanted(world.demand) == expected
    later = CardWorld(NODES)
    later.put(*pods)
    assert wanted(later.demand) == expected


def test_what_was_wanted_fades_by_halves() -> None:
    world = CardWorld(NODES, half_life=HOUR)
    world.put(typed("p", "A100", n=4), typed("q", "A100", n=4))
    world.delete("p")
    assert recent(world, "A100") == 8000
    world.now += HOUR
    assert recent(world, "A100") == pytest.approx(4000)
    world.now += HOUR
    assert recent(world, "A100") == 4000  # no less than what is wanted now
    world.delete("q")
    world.now += 2 * HOUR
    assert recent(world, "A100") == pytest.approx(1000)
    world.now += 20 * HOUR
    assert world.demand.wanted() == []


def test_anybody_may_name_anything_and_little_of_it_is_remembered() -> None:
    world = CardWorld(NODES)
    for i in range(2000):
        world.put(typed("p", f"made-up-{i}"))
    assert len(world.demand._wanted) <= 800
    world.delete("p")
    assert len(world.demand.wanted()) == 256
    world.put(*(typed(f"p-{i}", f"made-up-{i}") for i in range(1500)), typed("real", "A100", n=8))
    assert len(world.demand.wanted()) == 1024 and world.demand.wanted()[0].wish == CardTypeRequest(("A100",))


TYPES = st.sampled_from(["", "A100", "T4", "A100,T4", "V100"])
STEPS = st.lists(
    st.tuples(st.sampled_from("pqrs"), st.sampled_from(["put", "run", "end", "delete"]), TYPES), max_size=25
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_following_gives_what_starting_anew_gives(steps: list[tuple[str, str, str]]) -> None:
    world = CardWorld(NODES)

    def pod(name: str, required: str, done: str) -> PodInfo:
        made = typed(name, required)
        if done == "put":
            return made
        return replace(made, node="a", phase=PodPhase.RUNNING if done == "run" else PodPhase.FAILED)

    for name, done, required in steps:
        if done == "delete":
            world.delete(name)
        else:
            world.put(pod(name, required, done))
    fresh = CardDemand(world.state, world.table, half_life_seconds=HOUR, clock=lambda: world.now)
    assert wanted(world.demand) == wanted(fresh)
    most = {one.wish: one.recent(world.now, HOUR) for one in world.demand.wanted()}
    assert all(most[wish] >= sum(amounts) for wish, amounts in wanted(fresh).items())
    world.demand.rebuild()
    assert wanted(world.demand) == wanted(fresh)
