"""Types of cards, rare cards, and nodes with cards for pods that ask for none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.forecast_scheduler.made_cluster import made_object
from tests.rules_by_profile.cells import cells
from tests.rules_by_profile.worlds import EXTENDER, PLACES, World, card_node, pod

A100, H100, T4 = "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "Tesla-T4"


def card_nodes() -> list[dict[str, Any]]:
    """The H100 node is the largest: whoever goes by requests alone goes there."""
    return [card_node("a100", 4, model=A100), card_node("h100", 4, model=H100, cpu="64"), card_node("t4", 4, model=T4)]


def rare(protection: str) -> dict[str, Any]:
    return {"cards": {"protection": protection, "rare_types": ["H100"]}}


@cells("card types required", *PLACES)
def test_a_pod_goes_to_the_types_that_it_requires_or_waits(where: str, tmp_path: Path) -> None:
    world = World(tmp_path, where)
    pods = [pod(f"a-{i}", cards=1, says={"gpu-type": "A100"}) for i in range(5)]
    assert world.nodes_of(card_nodes(), pods) == ["a100"] * 4 + [""]
    nowhere = world.place(card_nodes(), [pod("v", cards=1, says={"gpu-type": "V100"})])["v"]
    assert nowhere.node == "" and "didn't have a card of type V100" in nowhere.why_not


@cells("card types preferred", *PLACES)
def test_types_that_a_pod_prefers_come_first_and_others_once_they_are_full(where: str, tmp_path: Path) -> None:
    pods = [pod(f"t-{i}", cards=1, says={"gpu-type-preferred": "T4"}) for i in range(5)]
    found = World(tmp_path, where).nodes_of(card_nodes(), pods)
    assert found[:4] == ["t4"] * 4 and found[4] in ("a100", "h100")


@cells("rare cards, soft", *PLACES)
def test_rare_cards_come_last_for_pods_that_do_not_name_them(where: str, tmp_path: Path) -> None:
    pods = [pod(f"any-{i}", cards=1) for i in range(9)]
    found = World(tmp_path, where, rare("soft")).nodes_of(card_nodes(), pods)
    assert "h100" not in found[:8] and found[8] == "h100"


@cells("rare cards, hard", *PLACES)
def test_rare_cards_are_only_for_pods_that_name_them(where: str, tmp_path: Path) -> None:
    named = pod("named", cards=1, says={"gpu-type": "H100"})
    pods = [named, *(pod(f"plain-{i}") for i in range(6)), *(pod(f"any-{i}", cards=1) for i in range(9))]
    nodes = [*card_nodes(), card_node("none", cpu="6")]
    found = World(tmp_path, where, rare("hard")).place(nodes, pods)
    assert found["named"].node == "h100"
    assert "h100" not in {one.node for name, one in found.items() if name != "named"}
    assert found["any-8"].node == "" and "rare cards that the pod does not name" in found["any-8"].why_not


@pytest.mark.parametrize("where", PLACES)
def test_listed_types_come_last_where_the_label_alone_says_the_type(where: str, tmp_path: Path) -> None:
    by_label, plain = card_node("dra", model=H100, cpu="64"), card_node("plain", cpu="2")
    pods = [pod(f"p-{i}") for i in range(3)]
    assert World(tmp_path, where, rare("soft")).nodes_of([by_label, plain], pods) == ["plain"] * 2 + ["dra"]
    with_cards = [by_label, plain, card_node("t4", 4, model=T4, cpu="8")]
    asking = [pod("named", says={"gpu-type": "H100"}), pod("any", cards=1)]
    assert World(tmp_path, where, rare("soft")).nodes_of(with_cards, asking) == ["dra", "t4"]
    if where != "gpu":  # there pods without cards never go to GPU nodes
        assert World(tmp_path, where, rare("soft")).nodes_of(with_cards[::2], pods) == ["t4"] * 3


def test_a_pod_that_names_a_device_class_asks_for_cards_where_plugins_offer_others(tmp_path: Path) -> None:
    """Without the rule it waits: pods without cards stay off GPU nodes."""
    dra = "resource.k8s.io/v1"
    pool = {"name": "mixed", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "d.example.com", "nodeName": "mixed", "pool": pool, "devices": [{"name": "g0"}]}
    objects = [made_object("DeviceClass", "c", dra, spec={}), made_object("ResourceSlice", "s", dra, spec=devices)]
    needy = pod("p")
    resources = needy["spec"]["containers"][0]["resources"]
    resources["limits"] = {"deviceclass.resource.kubernetes.io/c": "1"}
    resources["requests"] |= resources["limits"]
    assert World(tmp_path, "gpu").nodes_of([card_node("mixed", 1, model=T4), *objects], [needy]) == ["mixed"]


@cells("policies choose the protection", *PLACES)
def test_a_policy_chooses_the_protection_for_its_pods(where: str, tmp_path: Path) -> None:
    document = tmp_path / "policies.yaml"
    document.write_text("policies: {mine: {cards: {protection: hard}}}")
    world = World(tmp_path, where, rare("off"), policies={"file": str(document)})
    pods = [pod(f"{name}-{i}", cards=1, says=says) for name, says in _MINE_AND_OTHERS for i in range(5)]
    found = world.place([one for one in card_nodes() if one["metadata"]["name"] != "t4"], pods)
    nodes = {name: [found[f"{name}-{i}"].node for i in range(5)] for name in ("mine", "other")}
    assert nodes["mine"] == ["a100"] * 4 + [""]
    assert Counter(nodes["other"]) == {"h100": 4, "": 1}


_MINE_AND_OTHERS: tuple[tuple[str, dict[str, str]], ...] = (("mine", {"policy": "mine"}), ("other", {}))


@cells("pods without GPUs off GPU nodes", "online", "job", EXTENDER)
def test_pods_without_cards_go_to_nodes_without_cards_first(where: str, tmp_path: Path) -> None:
    nodes = [card_node("cards", 4, model=T4, cpu="64"), card_node("none", cpu="3")]
    assert World(tmp_path, where).nodes_of(nodes, [pod(f"p-{i}") for i in range(5)]) == ["none"] * 3 + ["cards"] * 2


@cells("pods without GPUs off GPU nodes", "gpu")
def test_pods_without_cards_of_the_gpu_profile_wait_for_nodes_without_cards(where: str, tmp_path: Path) -> None:
    nodes = [card_node("cards", 4, model=T4, cpu="64"), card_node("none", cpu="3")]
    world = World(tmp_path, where)
    assert world.nodes_of(nodes, [pod(f"p-{i}") for i in range(4)]) == ["none"] * 3 + [""]


@cells("without_cards: hard", *PLACES)
def test_hard_keeps_nodes_with_cards_from_pods_that_ask_for_none(where: str, tmp_path: Path) -> None:
    nodes = [card_node("cards", 4, model=T4, cpu="64"), card_node("none", cpu="3")]
    world = World(tmp_path, where, {"cards": {"without_cards": "hard"}})
    found = world.place(nodes, [*(pod(f"p-{i}") for i in range(4)), pod("asks", cards=1)])
    assert [one.node for one in found.values()] == ["none"] * 3 + ["", "cards"]


@cells("offline pods on GPU nodes", "gpu")
def test_offline_pods_may_have_idle_cores_of_gpu_nodes(where: str, tmp_path: Path) -> None:
    nodes = [card_node("cards", 1, model=T4, cpu="64"), card_node("none", cpu="3")]
    settings = {"gpu": {"idle_cpu": {"cores_per_gpu": 8, "memory_per_gpu": 1}}}
    world = World(tmp_path, where, schedule=settings)
    offline = [pod(f"o-{i}", says={"offline": "true"}, priority=-10) for i in range(8)]
    assert "cards" in world.nodes_of(nodes, offline)
