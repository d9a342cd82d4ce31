"""How close together members are to be: what annotations of a PodGroup say, and what becomes of mistakes."""

from __future__ import annotations

import json

import pytest

from base.errors import InputError
from placement.pod_groups.pod_group import ANYWHERE, GroupTopology, PodGroupInfo, group_topology
from scheduler.gangs.group_decoding import POD_GROUPS
from tests.scheduler.gangs.made_up import TRAIN, Scene, group, member

PREFERRED, REQUIRED = "forecast-scheduler.io/topology-preferred", "forecast-scheduler.io/topology-required"


def decoded(annotations: dict[str, str]) -> PodGroupInfo:
    metadata = {"namespace": "ml", "name": "train", "uid": "u", "annotations": annotations}
    return POD_GROUPS.decoded(json.dumps({"metadata": metadata, "spec": {"minMember": 2}}).encode())[0]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, ANYWHERE),
        ({"other": "x"}, ANYWHERE),
        ({PREFERRED: "", REQUIRED: " "}, ANYWHERE),
        ({REQUIRED: "zone"}, GroupTopology((), "zone")),
        (
            {PREFERRED: "kubernetes.io/hostname, example.com/rack ,zone", REQUIRED: "region"},
            GroupTopology(("kubernetes.io/hostname", "example.com/rack", "zone"), "region"),
        ),
    ],
)
def test_what_is_read(annotations: dict[str, str], expected: GroupTopology) -> None:
    assert group_topology(annotations) == decoded(annotations).topology == expected


@pytest.mark.parametrize(
    ("annotation", "text", "why"),
    [
        (PREFERRED, "rack,rack", "rack is there twice"),
        (PREFERRED, "a b", "must list label keys of nodes such as topology.kubernetes.io/zone, found 'a b'"),
        (PREFERRED, ",".join(f"l{n}" for n in range(9)), "names 9 levels, at most 8 are allowed"),
        (REQUIRED, "rack,zone", "must be one label key of nodes, found 2: name the tightest only"),
        (REQUIRED, '["zone"]', "must list label keys of nodes"),
    ],
)
def test_a_mistake_is_never_guessed_at(annotation: str, text: str, why: str) -> None:
    with pytest.raises(InputError) as raised:
        group_topology({annotation: text})
    assert str(raised.value).startswith(f"{annotation}: ") and why in str(raised.value)
    assert decoded({annotation: text}).problem == str(raised.value), "its members wait, and are told why"


def test_the_directory_tells_topology_and_who_waits() -> None:
    scene = Scene()
    scene.put(member("a"), member("b"), member("c", node="n1"), member("d", gates=("later",)))
    assert scene.directory.topology(TRAIN) is ANYWHERE and not scene.directory.waiting("ml/other")
    wanted = GroupTopology(("rack",))
    scene.directory.put_group(group(topology=wanted))
    assert scene.directory.topology(TRAIN) == wanted
    assert {pod.uid for pod in scene.directory.waiting(TRAIN)} == {"a", "b"}
    scene.assume(member("a"))
    assert {pod.uid for pod in scene.directory.waiting(TRAIN)} == {"b"}
    scene.directory.put_group(group(topology=wanted, problem="mistaken"))
    assert scene.directory.topology(TRAIN) is ANYWHERE
