"""Random storage for tests: volumes, claims, classes, drivers and limits as plain manifests, and pods' volumes of them.

Neither a volume controller nor a provisioner is needed: claims that are bound say so themselves. Their status, and that
of volumes, is in the manifest; an API server takes it as a patch of the status only. Sizes of the free volumes of a
class differ, as kube-scheduler chooses among equal ones at random.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

Manifest = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

_MODES: Final = (["ReadWriteOnce"], ["ReadWriteOncePod"], ["ReadOnlyMany"], ["ReadWriteMany", "ReadOnlyMany"])
_DRIVERS: Final = ("csi.example.com", "capacity.example.com", "ebs.csi.aws.com", "pd.csi.storage.gke.io")
_WAITING: Final = ("local", "csi-wait", "zonal", "capacity", "in-tree")
_DISKS: Final = ("disk-a", "disk-b")


def random_storage(
    rng: random.Random, nodes: Sequence[Mapping[str, Any]], *, namespaces: Sequence[str] = ("default",)
) -> list[Manifest]:
    """Manifests of all storage kinds for a cluster of these nodes; what others refer to comes first."""
    volumes = _Volumes(rng, nodes)
    claims = [claim for namespace in namespaces for claim in _claims(rng, namespace, volumes)]
    return [
        *_classes(rng, nodes),
        *_drivers(rng),
        *_csi_nodes(rng, nodes),
        *volumes.free(),
        *volumes.made,
        *claims,
        *_attachments(rng, nodes, volumes.made),
        *_capacities(rng, nodes, namespaces[0]),
    ]


def random_volumes(
    rng: random.Random, storage: Sequence[Mapping[str, Any]], namespace: str = "default", *, ephemeral: bool = False
) -> list[Manifest]:
    """`spec.volumes` of a pod of a namespace: claims of it, disks named in the pod, now and then a missing claim.

    ephemeral : with volumes whose claims `ephemeral_claims` makes once the pod exists
    """
    claims = [
        one["metadata"]["name"]
        for one in storage
        if one["kind"] == "PersistentVolumeClaim" and one["metadata"]["namespace"] == namespace
    ]
    good = [name for name in claims if name.startswith(("bound", "wait"))] or claims or ["missing"]
    sources: list[Manifest] = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        draw = rng.random()
        if draw < 0.72:
            sources.append({"persistentVolumeClaim": {"claimName": rng.choice(good)}})
        elif draw < 0.77:
            sources.append({"persistentVolumeClaim": {"claimName": rng.choice([*claims, "missing"])}})
        elif draw < 0.82 and ephemeral:
            template: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            class_name = rng.choice(_WAITING)
            sources.append(
                {"ephemeral": {"volumeClaimTemplate": {"spec": template | {"storageClassName": class_name}}}}
            )
        else:
            sources.append(_disk(rng))
    return [{"name": f"v{number}"} | source for number, source in enumerate(sources)]


def ephemeral_claims(pod: Mapping[str, Any]) -> list[Manifest]:
    """The claims of a pod's ephemeral volumes, as their controller makes them. pod: as the API server returned it."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }
    return [
        _object(
            "PersistentVolumeClaim",
            f"{pod['metadata']['name']}-{volume['name']}",
            namespace=pod["metadata"].get("namespace", "default"),
            ownerReferences=[owner],
        )
        | {"spec": volume["ephemeral"]["volumeClaimTemplate"]["spec"]}
        for volume in pod["spec"].get("volumes", ())
        if "ephemeral" in volume
    ]


def _object(kind: str, name: str, api_version: str = "v1", **metadata: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name} | metadata}


def _storage(kind: str, name: str, **metadata: Any) -> Manifest:
    return _object(kind, name, "storage.k8s.io/v1", **metadata)


def _name(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["name"])


def _labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _zones(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({_labels(node)[ZONE] for node in nodes if ZONE in _labels(node)}) or ["zone-of-nobody"]


def _some_zones(rng: random.Random, nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    zones = _zones(nodes)
    return rng.sample(zones, rng.randint(1, len(zones)))


def _disk(rng: random.Random) -> Manifest:
    read_only = rng.random() < 0.5
    name = rng.choice(_DISKS)
    match rng.randrange(4):
        case 0:
            return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}
        case 1:
            return {"awsElasticBlockStore": {"volumeID": f"vol-{name}", "readOnly": read_only}}
        case 2:
            portal = {
                "targetPortal": "10.0.0.1:3260",
                "iqn": f"iqn.2026-01.example.com:{name}",
                "lun": rng.randrange(2),
            }
            return {"iscsi": portal | {"readOnly": read_only}}
        case _:
            monitors = rng.sample(["10.0.0.1", "10.0.0.2", "10.0.0.3"], rng.randint(1, 2))
            pool = rng.choice(({}, {"pool": "fast"}))
            return {"rbd": {"monitors": monitors, "image": name, "readOnly": read_only} | pool}


def _classes(rng: random.Random, nodes: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    def one(name: str, provisioner: str, mode: str = "WaitForFirstConsumer", **more: Any) -> Manifest:
        return _storage("StorageClass", name) | {"provisioner": provisioner, "volumeBindingMode": mode} | more

    # The API server refuses two terms that say the same.
    zones = {tuple(sorted(_some_zones(rng, nodes))): None for _ in range(rng.choice((1, 1, 2)))}
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(some)}]} for some in zones]
    return [
        one("local", "kubernetes.io/no-provisioner"),
        one("csi-wait", "csi.example.com"),
        one("zonal", "csi.example.com", allowedTopologies=topologies),
        one("capacity", "capacity.example.com"),
        one("in-tree", "kubernetes.io/aws-ebs"),
        one("now", "csi.example.com", "Immediate"),
    ]


_REQUIRED: Final = "preventPodSchedulingIfMissing"  # kept from Kubernetes 1.37 on


def _drivers(rng: random.Random) -> list[Manifest]:
    return [
        _storage("CSIDriver", "csi.example.com") | {"spec": {_REQUIRED: rng.random() < 0.3}},
        _storage("CSIDriver", "ebs.csi.aws.com") | {"spec": {_REQUIRED: rng.random() < 0.3}},
        _storage("CSIDriver", "capacity.example.com") | {"spec": {"storageCapacity": rng.random() < 0.85}},
    ]


def _csi_nodes(rng: random.Random, nodes: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    found = []
    for node in nodes:
        if rng.random() < 0.15:
            continue
        drivers: list[Manifest] = []
        for driver in _DRIVERS:
            if rng.random() < 0.8:
                limit = {"allocatable": {"count": rng.choice((0, 1, 1, 2, 3, 20))}} if rng.random() < 0.7 else {}
                drivers.append({"name": driver, "nodeID": _name(node), "topologyKeys": None} | limit)
        annotations = {}
        if rng.random() < 0.5:
            annotations["storage.alpha.kubernetes.io/migrated-plugins"] = rng.choice(
                ("kubernetes.io/aws-ebs", "kubernetes.io/aws-ebs,kubernetes.io/gce-pd")
            )
        found.append(_storage("CSINode", _name(node), annotations=annotations) | {"spec": {"drivers": drivers}})
    return found


class _Volumes:
    """PersistentVolumes: those made for claims in `made`."""

    def __init__(self, rng: random.Random, nodes: Sequence[Mapping[str, Any]]) -> None:
        self._rng, self._nodes, self.made = rng, nodes, list[Manifest]()

    def free(self) -> list[Manifest]:
        """Volumes that any claim may have, of classes that wait for a pod."""
        found = []
        for class_name in ("local", "csi-wait", "capacity"):
            sizes = self._rng.sample(range(1, 40), self._rng.randint(0, min(3 * len(self._nodes), 24)))
            for number, size in enumerate(sizes):
                volume = self._volume(f"free-{class_name}-{number}", size)
                volume["spec"]["storageClassName"] = class_name
                volume["metadata"]["labels"] = {"disk": self._rng.choice(("ssd", "hdd"))}
                if self._rng.random() < 0.1:
                    volume["spec"]["volumeMode"] = "Block"
                phase = "Available" if self._rng.random() < 0.9 else "Released"
                found.append(volume | {"status": {"phase": phase}})
        return found

    def bound(self, namespace: str, claim: str, *, class_name: str = "", phase: str = "Bound") -> Manifest:
        """The volume of a claim."""
        volume = self._volume(f"pv-{namespace}-{claim}", 10)
        volume["spec"]["claimRef"] = {"namespace": namespace, "name": claim}
        if class_name:
            volume["spec"]["storageClassName"] = class_name
        self.made.append(volume | {"status": {"phase": phase}})
        return self.made[-1]

    def _volume(self, name: str, size: int) -> Manifest:
        rng, spec = self._rng, dict[str, Any]()
        spec["capacity"] = {"storage": f"{size}Gi"}
        spec["accessModes"] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"][: rng.choice((1, 2, 3, 3))]
        labels: dict[str, str] = {}
        match rng.randrange(5):
            case 0:
                spec["awsElasticBlockStore"] = {"volumeID": f"vol-{name}"}
            case 1:
                spec["gcePersistentDisk"] = {"pdName": name}
            case 2:
                spec["hostPath"] = {"path": "/data"}
            case _:
                spec["csi"] = {"driver": rng.choice(_DRIVERS), "volumeHandle": f"handle-{name}"}
        draw = rng.random()
        if draw < 0.3:
            hosts = [_name(node) for node in rng.sample(list(self._nodes), min(len(self._nodes), rng.randint(1, 3)))]
            spec["nodeAffinity"] = _required({"key": HOSTNAME, "operator": "In", "values": hosts})
        elif draw < 0.5:
            zones = {"key": ZONE, "operator": rng.choice(("In", "NotIn")), "values": _some_zones(rng, self._nodes)}
            more = {"key": HOSTNAME, "operator": "NotIn", "values": [_name(rng.choice(self._nodes))]}
            spec["nodeAffinity"] = rng.choice((_required(zones), _required(zones, more)))
        elif draw < 0.7 and "gcePersistentDisk" not in spec:
            labels[rng.choice((ZONE, "failure-domain.beta.kubernetes.io/zone"))] = "__".join(
                _some_zones(rng, self._nodes)
            )
        return _object("PersistentVolume", name, labels=labels) | {"spec": spec}


def _required(*expressions: Manifest) -> Manifest:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}


def _claims(rng: random.Random, namespace: str, volumes: _Volumes) -> list[Manifest]:
    found = []
    for number in range(rng.randint(3, 7)):
        name = f"bound-{number}"
        volume = volumes.bound(namespace, name, class_name=rng.choice(("", "now", "csi-wait")))
        claim = _claim(name, namespace, volume["spec"].get("storageClassName", ""), rng.choice(_MODES))
        found.append(_bound_to(claim, volume["metadata"]["name"]))
    for number in range(rng.randint(2, 7)):
        class_name = rng.choice(_WAITING)
        claim = _claim(f"wait-{number}", namespace, class_name, ["ReadWriteOnce"], size=rng.randint(1, 30))
        draw = rng.random()
        if draw < 0.15:
            claim["spec"]["selector"] = {"matchLabels": {"disk": rng.choice(("ssd", "hdd"))}}
        elif draw < 0.25:
            selected = _name(rng.choice(volumes._nodes))
            claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": selected}
        elif draw < 0.3:
            claim["spec"]["volumeMode"] = "Block"
        elif draw < 0.4:
            volumes.bound(namespace, f"wait-{number}", class_name=class_name, phase="Available")
        found.append(claim)
    lost = _bound_to(_claim("lost", namespace, "now"), "pv-that-went")
    lost["status"]["phase"] = "Lost"
    prebound = _claim("prebound", namespace, "csi-wait")
    prebound["spec"]["volumeName"] = "pv-to-come"
    return [
        *found,
        lost,
        prebound,
        _bound_to(_claim("of-missing-volume", namespace, "now"), "pv-unseen"),
        _claim("pending", namespace, "now"),
        _claim("classless", namespace, ""),
        _claim("of-missing-class", namespace, "not-there"),
    ]


def _claim(
    name: str, namespace: str, class_name: str, modes: Sequence[str] = ("ReadWriteOnce",), *, size: int = 1
) -> Manifest:
    return _object("PersistentVolumeClaim", name, namespace=namespace) | {
        "spec": {
            "accessModes": list(modes),
            "storageClassName": class_name,
            "resources": {"requests": {"storage": f"{size}Gi"}},
        }
    }


def _bound_to(claim: Manifest, volume: str) -> Manifest:
    claim["spec"]["volumeName"] = volume
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return claim | {"status": {"phase": "Bound"}}


def _attachments(rng: random.Random, nodes: Sequence[Mapping[str, Any]], volumes: Sequence[Manifest]) -> list[Manifest]:
    found = []
    for number, volume in enumerate(volumes):
        if rng.random() < 0.3:
            attacher = volume["spec"].get("csi", {}).get("driver", "csi.example.com")
            spec = {
                "attacher": attacher,
                "nodeName": _name(rng.choice(nodes)),
                "source": {"persistentVolumeName": volume["metadata"]["name"]},
            }
            found.append(_storage("VolumeAttachment", f"attachment-{number}") | {"spec": spec})
    return found


def _capacities(rng: random.Random, nodes: Sequence[Mapping[str, Any]], namespace: str) -> list[Manifest]:
    found = []
    for number in range(rng.randint(0, 6)):
        topology = rng.choice(
            (
                {"matchLabels": {HOSTNAME: _name(rng.choice(nodes))}},
                {"matchLabels": {ZONE: rng.choice(_zones(nodes))}},
                {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": _some_zones(rng, nodes)}]},
                {},
                None,
            )
        )
        capacity = _storage("CSIStorageCapacity", f"capacity-{number}", namespace=namespace)
        capacity |= {"storageClassName": rng.choice(("capacity", "capacity", "csi-wait"))}
        capacity |= {"capacity": f"{rng.randint(1, 40)}Gi"}
        if topology is not None:
            capacity["nodeTopology"] = topology
        if rng.random() < 0.3:
            capacity["maximumVolumeSize"] = f"{rng.randint(1, 20)}Gi"
        found.append(capacity)
    return found
