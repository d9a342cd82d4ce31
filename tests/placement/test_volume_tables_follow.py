"""The volume filters over tables that followed random changes say what they say over new ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from placement.filters.node_volume_limits import NodeVolumeLimits
from placement.filters.volume_binding import VolumeBinding
from placement.filters.volume_restrictions import VolumeRestrictions
from placement.filters.volume_zone import VolumeZone
from tests.placement.random_storage import ephemeral_claims, random_storage, random_volumes
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import pod

Manifest = dict[str, Any]
FILTERS = (VolumeRestrictions(), NodeVolumeLimits(), VolumeZone(), VolumeBinding())


def random_nodes(rng: random.Random) -> list[Manifest]:
    nodes = []
    for number in range(rng.randint(1, 9)):
        labels = {"kubernetes.io/hostname": f"n{number}"}
        if rng.random() < 0.85:
            labels["topology.kubernetes.io/zone"] = rng.choice("abc")
        if rng.random() < 0.2:
            labels["failure-domain.beta.kubernetes.io/zone"] = rng.choice("abc")
        if rng.random() < 0.5:
            labels["topology.ebs.csi.aws.com/zone"] = rng.choice("abc")
        nodes.append({"kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}})
    return nodes


def random_cluster(rng: random.Random) -> tuple[list[Manifest], list[Manifest]]:
    """Objects in any order, and pods to place."""
    nodes = random_nodes(rng)
    storage = random_storage(rng, nodes)
    sitting = [
        pod(f"p{number}", *random_volumes(rng, storage), node=rng.choice(nodes)["metadata"]["name"])
        for number in range(rng.randint(0, 12))
    ]
    probes = [pod(f"probe{number}", *random_volumes(rng, storage, ephemeral=True)) for number in range(6)]
    made = [claim for probe in probes if rng.random() < 0.8 for claim in ephemeral_claims(probe)]
    objects = [*nodes, *storage, *sitting, *made]
    rng.shuffle(objects)
    return objects, probes


def reasons(cluster: StorageCluster, probes: Sequence[Manifest]) -> list[object]:
    return [cluster.reasons(one, probe) for probe in probes for one in FILTERS]


@pytest.mark.parametrize("seed", range(40))
def test_tables_that_followed_changes_equal_new_ones(seed: int) -> None:
    rng = random.Random(seed)
    objects, probes = random_cluster(rng)
    others, _ = random_cluster(rng)
    cluster = StorageCluster(objects)
    now = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    for step in range(60):
        item = rng.choice(others)
        key = (item["kind"], item["metadata"]["name"])
        if key in now and rng.random() < 0.5:
            cluster.delete(now.pop(key))
        else:
            now[key] = item
            cluster.put(item)
        if step % 15 == 14:
            anew = list(now.values())
            rng.shuffle(anew)
            assert reasons(cluster, probes) == reasons(StorageCluster(anew), probes)
    for item in list(now.values()):
        cluster.delete(item)
    assert cluster.index.storage.is_empty()
