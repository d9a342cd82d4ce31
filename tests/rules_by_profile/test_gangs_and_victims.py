"""Gangs, and room that is made for pods of a higher priority."""

from __future__ import annotations

from pathlib import Path

from tests.forecast_scheduler.made_cluster import made_object, seated
from tests.rules_by_profile.cells import cells
from tests.rules_by_profile.worlds import OUR_PROFILES, World, card_node, pod


@cells("gangs", *OUR_PROFILES)
def test_a_gang_is_placed_whole_or_not_at_all(where: str, tmp_path: Path) -> None:
    group = made_object("PodGroup", "train", "scheduling.x-k8s.io/v1alpha1", spec={"minMember": 3})
    label = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}

    def placed(*sizes: str) -> list[str]:
        nodes = [group, *(card_node(f"n-{i}", cpu=size) for i, size in enumerate(sizes))]
        return World(tmp_path, where).nodes_of(nodes, [pod(f"m-{i}", cpu="2", metadata=label) for i in range(3)])

    assert placed("4") == [""] * 3
    assert sorted(placed("4", "2")) == ["n-0", "n-0", "n-1"]


@cells("native gangs", *OUR_PROFILES)
def test_a_native_gang_is_placed_whole_or_not_at_all(where: str, tmp_path: Path) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    group = made_object("PodGroup", "train", "scheduling.k8s.io/v1beta1", spec=spec)

    def placed(*sizes: str) -> list[str]:
        nodes = [group, *(card_node(f"n-{i}", cpu=size) for i, size in enumerate(sizes))]
        members = [pod(f"m-{i}", cpu="2", schedulingGroup={"podGroupName": "train"}) for i in range(3)]
        return World(tmp_path, where).nodes_of(nodes, members)

    assert placed("4") == [""] * 3
    assert sorted(placed("4", "2")) == ["n-0", "n-0", "n-1"]


@cells("PodGroups by annotation", *OUR_PROFILES)
def test_pods_whose_owner_states_a_minimum_are_placed_whole_or_not_at_all(where: str, tmp_path: Path) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-of-train", "controller": True}

    def placed(*sizes: str) -> list[str]:
        nodes = [card_node(f"n-{i}", cpu=size) for i, size in enumerate(sizes)]
        members = [pod(f"m-{i}", cpu="2", says={"min-member": "3"}) for i in range(3)]
        for one in members:
            one["metadata"]["ownerReferences"] = [job]
        return World(tmp_path, where).nodes_of(nodes, members)

    assert placed("4") == [""] * 3
    assert sorted(placed("4", "2")) == ["n-0", "n-0", "n-1"]


@cells("preemption", *OUR_PROFILES)
def test_a_pod_of_a_higher_priority_gets_the_room_of_a_lower_one(where: str, tmp_path: Path) -> None:
    cheap = seated(pod("cheap", cpu="4", priority=1), "node")
    found = World(tmp_path, where).place([card_node("node", cpu="4")], [cheap, pod("dear", cpu="4", priority=100)])
    assert found["dear"].node == "node"


@cells("gang preemption", *OUR_PROFILES)
def test_a_gang_gets_the_room_of_lower_pods_if_all_of_it_then_fits(where: str, tmp_path: Path) -> None:
    group = made_object("PodGroup", "train", "scheduling.x-k8s.io/v1alpha1", spec={"minMember": 2})
    label = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}
    members = [pod(f"m-{i}", cpu="4", priority=100, metadata=label) for i in range(2)]

    def placed(*priorities: int) -> list[str]:
        nodes = [group, *(card_node(f"n-{i}", cpu="4") for i in range(2))]
        there = [seated(pod(f"p-{i}", cpu="4", priority=one), f"n-{i}") for i, one in enumerate(priorities)]
        return sorted(World(tmp_path, where).nodes_of(nodes, [*there, *members]))

    assert placed(1, 1) == ["n-0", "n-1"]
    assert placed(1, 200) == ["", ""]
