"""Pods with several cards get such as are near each other, and nodes that have them come first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from placement.devices.device_demand import GpuDemand
from placement.topology.near_cards import NearCards
from placement.topology.node_zones import CardLayout, NodeZones, TopologyManagerPolicy
from tests.placement.devices.device_world import GPU, INDEX, card_pod
from tests.placement.topology.zones_world import World, zones

HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
LINKED = CardLayout(PAIRS, HALVES, (0, 1))


def eight(node: str, layout: CardLayout = LINKED, **more: object) -> NodeZones:
    return zones(node, {GPU: 4.0}, {GPU: 4.0}, policy=TopologyManagerPolicy.NONE, layout=layout, **more)  # type: ignore[arg-type]


def world_of(taken: dict[str, str], *published: NodeZones) -> tuple[World, NearCards]:
    """taken: cards that others have, by node."""
    pods = [
        card_pod(f"{node}-{card}", node, n=1, said={INDEX: card}) for node, cards in taken.items() for card in cards
    ]
    made = World(dict.fromkeys(taken, 8), pods)
    made.publish(*published)
    return made, NearCards(made.zones, made.devices)


def preferred(made: World, plugin: NearCards, n: int, n_pods: int = 1) -> tuple[list[str], int]:
    found = plugin.prefer(card_pod("asks", n=n), n_pods, made.view, np.arange(made.state.n_rows))
    return [made.state.names[row] for row in found.rows.tolist()], found.most


def test_one_group_before_several_and_the_unknown_between() -> None:
    made, plugin = world_of({"near": "01", "far": "0246", "unknown": ""}, eight("near"), eight("far"))
    assert preferred(made, plugin, 2)[0] == ["near"]
    made, plugin = world_of({"far": "0246", "unknown": ""}, eight("far"))
    assert preferred(made, plugin, 2)[0] == ["unknown"]


def test_links_come_before_zones() -> None:
    across = CardLayout(((0, 4), (1, 5)), HALVES, (0, 1))
    made, plugin = world_of({"linked": "23567", "zone": "1357"}, eight("linked", across), eight("zone"))
    assert preferred(made, plugin, 2)[0] == ["linked"]


def test_the_nearer_zones_where_several_are_needed() -> None:
    near = {0: {0: 10, 1: 12}, 1: {0: 12, 1: 10}}
    far = {0: {0: 10, 1: 32}, 1: {0: 32, 1: 10}}
    made, plugin = world_of({"far": "", "near": ""}, eight("far", costs=far), eight("near", costs=near))
    assert preferred(made, plugin, 6)[0] == ["near"]


def test_it_has_nothing_to_say_of_one_card_or_where_nobody_published() -> None:
    made, plugin = world_of({"near": "", "far": "0246"}, eight("near"), eight("far"))
    assert preferred(made, plugin, 1, 5) == (["near", "far"], 5)
    made, plugin = world_of({"a": "", "b": ""})
    assert preferred(made, plugin, 4, 5) == (["a", "b"], 5)


def test_many_at_once_only_where_each_of_them_keeps_its_cards_together() -> None:
    made, plugin = world_of({"a": "", "b": ""}, eight("a"), eight("b"))
    assert preferred(made, plugin, 2, 5)[1] == 5
    made, plugin = world_of({"a": "02", "b": ""}, eight("a"), eight("b"))
    assert preferred(made, plugin, 2, 5)[1] == 1, "the third on a would get cards of two pairs"


@pytest.mark.parametrize(
    ("taken", "n", "expected"),
    [("", 4, (0, 1, 2, 3)), ("2", 4, (4, 5, 6, 7)), ("2", 1, (3,)), ("2", 2, (0, 1)), ("0123", 8, None)],
)
def test_the_cards_of_a_node(taken: str, n: int, expected: Sequence[int] | None) -> None:
    made, plugin = world_of({"a": taken}, eight("a"))
    assert plugin.choose(made.state.row_of["a"], GpuDemand(n, 1000), card_pod("asks", n=n)) == expected


def test_shares_and_nodes_of_which_nothing_is_known_are_for_others() -> None:
    made, plugin = world_of({"a": "", "b": ""}, eight("a"))
    asks = card_pod("asks", milli=300)
    assert plugin.choose(made.state.row_of["a"], GpuDemand(1, 300), asks) is None
    assert plugin.choose(made.state.row_of["b"], GpuDemand(1, 1000), asks) is None
    assert plugin.choose(made.state.row_of["a"], GpuDemand(1, 1000), asks) == (0,)
