"""Whose node it is."""

from __future__ import annotations

from pathlib import Path

from tests.rules_by_profile.cells import cells
from tests.rules_by_profile.worlds import PLACES, World, card_node, pod


@cells("domain", *PLACES)
def test_pods_stay_in_the_domain_of_what_places_them(where: str, tmp_path: Path) -> None:
    nodes = [card_node("others", cpu="64", domain="of-others"), card_node("ours", cpu="2")]
    assert World(tmp_path, where).nodes_of(nodes, [pod(f"p-{i}") for i in range(3)]) == ["ours"] * 2 + [""]
