"""Rules of kube-scheduler beyond requests, labels and taints."""

from __future__ import annotations

from pathlib import Path

from tests.rules_by_profile.cells import cells
from tests.rules_by_profile.worlds import OUR_PROFILES, World, card_node, pod


@cells("features that nodes declare", *OUR_PROFILES)
def test_a_pod_goes_where_its_feature_is_declared(where: str, tmp_path: Path) -> None:
    able, unable = card_node("able", cpu="2"), card_node("unable", cpu="64")
    able["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    made = pod("needy")
    made["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    assert World(tmp_path, where).nodes_of([able, unable], [made]) == ["able"]


@cells("nominations by others", *OUR_PROFILES)
def test_room_is_kept_for_pods_that_others_nominated(where: str, tmp_path: Path) -> None:
    theirs = pod("theirs", cpu="3")
    theirs["spec"]["schedulerName"], theirs["status"] = "another", {"nominatedNodeName": "wanted"}
    cluster = [card_node("wanted", cpu="4"), card_node("other", cpu="2"), theirs]
    assert World(tmp_path, where).nodes_of(cluster, [pod("p-0", cpu="2"), pod("p-1", cpu="2")]) == ["other", ""]
