"""NodeResourceTopologies from JSON: what is read, and what becomes of mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.decoding.watched_kinds import UndecodableObject
from placement.node_rule_settings import DeviceOptions
from placement.topology.node_zones import (
    KOORDINATOR_CPUS,
    NO_LAYOUT,
    CardLayout,
    CpuManager,
    NodeZones,
    Scope,
    TopologyManagerPolicy,
)
from placement.topology.zone_decoding import node_resource_topologies

GPU = "nvidia.com/gpu"
WATCHED = node_resource_topologies(DeviceOptions())


def zone(number: int, *, cards: int = 0, kind: str = "Node", name: str = "", **attributes: str) -> dict[str, Any]:
    resources = [
        {"name": "cpu", "capacity": "32", "allocatable": "31", "available": "12500m"},
        {"name": GPU, "capacity": cards, "allocatable": cards, "available": cards},
    ]
    return {
        "name": name or f"node-{number}",
        "type": kind,
        "costs": [{"name": "node-0", "value": 10 if number == 0 else 21}, {"name": "odd", "value": 1}],
        "attributes": [{"name": key.replace("_", "-"), "value": value} for key, value in attributes.items()],
        "resources": resources[: 2 if cards else 1],
    }


def decoded(*zones: dict[str, Any], **parts: Any) -> NodeZones:
    body = {"metadata": {"name": "n1", "resourceVersion": "7"}, "zones": list(zones), **parts}
    found, version = WATCHED.decoded(json.dumps(body).encode())
    assert version == "7"
    return found


def attributes(**said: str) -> list[dict[str, str]]:
    return [{"name": key, "value": value} for key, value in said.items()]


def test_all_that_is_read() -> None:
    found = decoded(
        zone(1, cards=4),
        zone(0, cards=4),
        zone(0, kind="Core", name="core-0"),
        zone(0, name="socket"),
        attributes=attributes(topologyManagerPolicy="single-numa-node", topologyManagerScope="pod", other="x"),
    )
    assert (found.node, found.policy, found.scope) == ("n1", TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.POD)
    assert [one.number for one in found.zones] == [0, 1]
    assert found.zones[1].available == {"cpu": 12500, GPU: 4}
    assert found.zones[1].costs == {0: 21}
    assert found.zones[1].total == {"cpu": 32000, GPU: 4} and found.zones[1].socket == ""
    assert found.layout == CardLayout(numa=((0, 1, 2, 3), (4, 5, 6, 7)), zones=(0, 1))


def test_the_cpu_manager() -> None:
    cpus = {"detail": [{"id": n, "core": n // 2, "socket": 1, "node": 0} for n in range(4)]}
    found = decoded(
        zone(0),
        metadata={"name": "n1", "resourceVersion": "7", "annotations": {KOORDINATOR_CPUS: json.dumps(cpus)}},
        attributes=attributes(cpuManagerPolicyOptions="full-pcpus-only=true"),
    )
    assert found.cpus == CpuManager(full_cores=True, threads_per_core=2) and found.zones[0].socket == "1"


@pytest.mark.parametrize(
    ("policies", "said", "expected"),
    [
        (None, {}, (TopologyManagerPolicy.NONE, Scope.CONTAINER)),
        (["SingleNUMANodePodLevel"], {}, (TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.POD)),
        (["SingleNUMANodeContainerLevel", "None"], {}, (TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.CONTAINER)),
        (["RestrictedContainerLevel"], {}, (TopologyManagerPolicy.RESTRICTED, Scope.CONTAINER)),
        (
            ["SingleNUMANodePodLevel"],
            {"topologyManagerPolicy": "restricted"},
            (TopologyManagerPolicy.RESTRICTED, Scope.POD),
        ),
        (
            ["SingleNUMANodePodLevel"],
            {"topologyManagerPolicy": "odd"},
            (TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.POD),
        ),
    ],
)
def test_the_policy(
    policies: list[str] | None, said: dict[str, str], expected: tuple[TopologyManagerPolicy, Scope]
) -> None:
    found = decoded(zone(0), topologyPolicies=policies, attributes=attributes(**said))
    assert (found.policy, found.scope) == expected


def test_cards_by_what_zones_say() -> None:
    found = decoded(zone(0, cards=2, gpus="1, 3"), zone(1, cards=2, gpus="0,2"), zone(2, cards=2))
    assert found.layout == CardLayout(numa=((1, 3), (0, 2)), zones=(0, 1))


@pytest.mark.parametrize(
    "zones",
    [
        [
            zone(0, cards=4),
            zone(1, cards=4),
            *(zone(0, kind="NVLink", name=f"l{n}", gpus=f"{n},{n + 4}") for n in (0, 1)),
        ],
        [
            zone(0, gpus="0"),
            zone(1, gpus="4"),
            zone(0, kind="NVLink", name="x", gpus="0,4"),
            zone(1, kind="NVLink", gpus="1,5"),
        ],
    ],
)
def test_links_by_zones_of_their_own(zones: list[dict[str, Any]]) -> None:
    assert decoded(*zones).layout.nvlink == ((0, 4), (1, 5))


def test_links_by_an_attribute_of_zones() -> None:
    found = decoded(*(zone(n, cards=2, nvlink_group="left" if n < 2 else f"right-{n}") for n in range(4)))
    assert found.layout.nvlink == ((0, 1, 2, 3), (4, 5), (6, 7))
    assert found.layout.levels == (found.layout.nvlink, found.layout.numa)


def test_a_card_alone_is_linked_to_none() -> None:
    assert decoded(zone(0, cards=1, nvlink_group="a"), zone(1, cards=1)).layout == CardLayout((), ((0,), (1,)), (0, 1))


def test_nodes_without_cards() -> None:
    assert decoded(zone(0), zone(1)).layout is NO_LAYOUT
    assert decoded().zones == ()
    assert WATCHED.decoded(b'{"metadata": {"name": "n1"}, "zones": null}')[0] == NodeZones("n1")


@pytest.mark.parametrize(
    ("zones", "why"),
    [
        ([zone(0, gpus="0,x")], "attribute gpus is '0,x': it must list indices of cards"),
        ([zone(0, gpus="99999")], "attribute gpus is '99999'"),
        ([zone(0, gpus="0,1"), zone(1, gpus="1,2")], "names a card twice"),
        ([zone(n) for n in range(65)], "has 65 NUMA zones, at most 64 are read"),
        ([zone(0) | {"resources": [{"name": "cpu", "available": "many"}]}], "'many'"),
        ([{"name": "node-0"}], "type"),
    ],
)
def test_what_cannot_be_read_is_said(zones: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(UndecodableObject) as raised:
        decoded(*zones)
    assert "NodeResourceTopology n1" in str(raised.value) and why in str(raised.value)
