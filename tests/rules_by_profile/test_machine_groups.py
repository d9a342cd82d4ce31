"""Machine groups: who may go where, in which order, and what is lent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.forecast_scheduler.made_cluster import seated
from tests.rules_by_profile.cells import cells
from tests.rules_by_profile.worlds import PLACES, World, card_node, pod

SEARCH: dict[str, Any] = {"name": "search", "owners": [{"namespaces": ["shop"]}], "only": False}
LENT: dict[str, Any] = {"name": "search", "owners": [{"namespaces": ["search"]}], "borrow": "idle", "borrow_below": 10}
BORROWER: dict[str, Any] = {"says": {"borrow": "true"}}


def machines(*, own: str = "3", free: str = "64") -> list[dict[str, Any]]:
    """The nodes of no group are the largest."""
    return [card_node("own", cpu=own, machine_group="search"), card_node("free", cpu=free)]


@cells("machine groups, only", *PLACES)
def test_pods_go_to_the_group_that_they_name_and_others_stay_away(where: str, tmp_path: Path) -> None:
    world = World(tmp_path, where)
    named = [pod(f"s-{i}", says={"machine-group": "search"}) for i in range(4)]
    assert world.nodes_of(machines(), named) == ["own"] * 3 + [""]
    assert world.nodes_of(machines(free="2"), [pod(f"p-{i}") for i in range(3)]) == ["free"] * 2 + [""]


@cells("machine groups, owners", *PLACES)
def test_only_owners_may_name_a_group(where: str, tmp_path: Path) -> None:
    world = World(tmp_path, where, {"machine_groups": [LENT]})
    found = world.place(machines(), [pod("stranger", says={"machine-group": "search"})])["stranger"]
    assert found.node == "" and "is not an owner of" in found.why_not


@cells("machine groups, order", *PLACES)
def test_the_own_machines_come_first_while_they_have_room(where: str, tmp_path: Path) -> None:
    world = World(tmp_path, where, {"machine_groups": [SEARCH]})
    pods = [pod(f"s-{i}", says={"machine-group": "search"}) for i in range(5)]
    assert world.nodes_of(machines(), pods) == ["own"] * 3 + ["free"] * 2


@cells("machine groups, borrowing", *PLACES)
def test_borrowed_machines_come_last_and_a_share_is_kept(where: str, tmp_path: Path) -> None:
    world = World(tmp_path, where, {"machine_groups": [LENT | {"keep_free": 0.5}]})
    nodes = machines(own="8", free="2")
    found = world.place(nodes, [pod(f"b-{i}", **BORROWER) for i in range(8)])
    assert [one.node for one in found.values()] == ["free"] * 2 + ["own"] * 4 + [""] * 2
    assert "keeps what it has left for its owners" in found["b-7"].why_not
    important = world.place(machines(free="1"), [pod("p", cpu="2", priority=10, **BORROWER)])["p"]
    assert important.node == "" and "only to pods of a lower priority" in important.why_not


@cells("machine groups, owners wait", *PLACES)
def test_a_group_lends_nothing_while_its_owners_wait(where: str, tmp_path: Path) -> None:
    world = World(tmp_path, where, {"machine_groups": [LENT]})
    owner = pod("owner", cpu="64", says={"machine-group": "search"}, metadata={"namespace": "search"})
    nodes = machines(own="4", free="1")
    pods = [owner, *(pod(f"b-{i}", **BORROWER) for i in range(2))]
    assert world.nodes_of(nodes, pods) == ["", "free", ""]
    taken = seated(pod("taken"), "free")
    assert world.nodes_of(nodes, [taken, pod("b", **BORROWER)]) == ["own"]
