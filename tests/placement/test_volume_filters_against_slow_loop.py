from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kube.decoding.decoding import decode_pod
from tests.placement.random_storage import ephemeral_claims, random_storage, random_volumes
from tests.placement.slow_volume_filters import SlowCluster
from tests.placement.storage_cluster import StorageCluster, decoded
from tests.placement.volume_differences import VOLUME_FILTERS, differences

Manifest = dict[str, Any]


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


def pod(name: str, volumes: Sequence[Mapping[str, Any]], node: str = "") -> Manifest:
    spec = {"nodeName": node, "volumes": list(volumes), "containers": [{"name": "main"}]}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}


def random_cluster(rng: random.Random) -> tuple[list[Manifest], list[Manifest]]:
    """Objects in any order, and pods to place."""
    nodes = random_nodes(rng)
    storage = random_storage(rng, nodes)
    sitting = [
        pod(f"p{number}", random_volumes(rng, storage), node=rng.choice(nodes)["metadata"]["name"])
        for number in range(rng.randint(0, 12))
    ]
    probes = [pod(f"probe{number}", random_volumes(rng, storage, ephemeral=True)) for number in range(6)]
    made = [claim for probe in probes if rng.random() < 0.8 for claim in ephemeral_claims(probe)]
    objects = [*nodes, *storage, *sitting, *made]
    rng.shuffle(objects)
    return objects, probes


@pytest.mark.parametrize("seed", range(60))
def test_filters_give_the_reasons_of_the_slow_loop(seed: int) -> None:
    objects, probes = random_cluster(random.Random(seed))
    assert differences(StorageCluster(objects), SlowCluster.of(map(decoded, objects)), probes) == []


@pytest.mark.parametrize("seed", range(30))
def test_tables_that_followed_changes_equal_new_ones(seed: int) -> None:
    rng = random.Random(f"changes {seed}")
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
            assert differences(cluster, SlowCluster.of(map(decoded, now.values())), probes) == []
    for item in list(now.values()):
        cluster.delete(item)
    assert differences(cluster, SlowCluster(), probes) == []
    assert cluster.index.storage.is_empty()


def test_random_clusters_reject_some_nodes_for_every_reason() -> None:
    seen: Counter[str] = Counter()
    some = 0
    for seed in range(150):
        objects, probes = random_cluster(random.Random(seed))
        slow = SlowCluster.of(map(decoded, objects))
        for probe in probes:
            found = [slowly(slow, decode_pod(probe)) for _, slowly in VOLUME_FILTERS]
            some += 0 < len({name for reasons in found for name in reasons}) < len(slow.nodes)
            seen.update({reason.split('"')[0] for reasons in found for why in reasons.values() for reason in why})
    assert some > 150
    for reason in (
        "node(s) had no available disk",
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod",
        "node(s) exceed max volume count",
        "csi.example.com CSI driver is not installed on the node",
        "ebs.csi.aws.com CSI driver is not installed on the node",
        "node(s) had no available volume zone",
        "node(s) didn't match PersistentVolume's node affinity",
        "node(s) didn't find available persistent volumes to bind",
        "node(s) did not have enough free storage",
        "pod has unbound immediate PersistentVolumeClaims",
        "waiting for ephemeral volume controller",
    ):
        assert any(one.startswith(reason) and count >= 5 for one, count in seen.items()), (reason, seen)
