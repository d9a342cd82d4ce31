"""A cluster from a file, as `kubectl get nodes,pods,replicasets,jobs -A -o json` writes it; other forms will do, too
(kube/decoding/object_files.py), such as the folder of `kubectl cluster-info dump`.

Namespaces and storage objects, which only filters read, may be in it (EXPORT_FOR_FILTERS), and so may all that our
scheduling loops watch (docs/use/scheduling.md has the command): `ClusterObjects.of` decodes those.

A pod that only names its PriorityClass, as manifests do that no API server has admitted, gets the priority of the
class: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from base.errors import InputError
from cluster.tables.changes import Change
from cluster.tables.cluster_file_remarks import cluster_remarks, unique_objects
from cluster.tables.state import ClusterState
from kube.decoding import wire
from kube.decoding.decoding import SCORED_KINDS, ApiObject, Kind, decode_object
from kube.decoding.jobs import JobInfo
from kube.decoding.object_files import NoObjects, ObjectInFile, objects_of, objects_of_path
from kube.decoding.watched_kinds import REFUSED, UndecodableObject, Watched
from kube.decoding.wire_base import Int32, Text, Wire
from kube.objects.objects import NodeInfo, PodInfo, ReplicaSetInfo

PRIORITY_CLASS: Final = ("scheduling.k8s.io", "PriorityClass")
"""API group and kind."""

_BUILT_IN: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

logger = logging.getLogger(__name__)
EXPORT_COMMAND: Final = "kubectl get nodes,pods,replicasets,jobs -A -o json"
EXPORT_FOR_FILTERS: Final = f"kubectl get {','.join(kind.value for kind in Kind)} -A -o json"

# By API group, too: other groups have a Job of their own (batch.volcano.sh).
_KINDS: Final = {
    ("", "Node"): Kind.NODES,
    ("", "Pod"): Kind.PODS,
    ("apps", "ReplicaSet"): Kind.REPLICA_SETS,
    ("batch", "Job"): Kind.JOBS,
    ("", "Namespace"): Kind.NAMESPACES,
    ("", "PersistentVolume"): Kind.VOLUMES,
    ("", "PersistentVolumeClaim"): Kind.CLAIMS,
    ("storage.k8s.io", "StorageClass"): Kind.STORAGE_CLASSES,
    ("storage.k8s.io", "CSINode"): Kind.CSI_NODES,
    ("storage.k8s.io", "CSIDriver"): Kind.CSI_DRIVERS,
    ("storage.k8s.io", "CSIStorageCapacity"): Kind.STORAGE_CAPACITIES,
    ("storage.k8s.io", "VolumeAttachment"): Kind.VOLUME_ATTACHMENTS,
}

_WITHOUT_RAW: Final = frozenset({Kind.NODES, Kind.PODS, Kind.REPLICA_SETS})
"""Kinds whose JSON no further table reads; there are many of them."""


class _ClassJson(Wire):
    metadata: wire.Metadata
    value: Int32 = 0
    global_default: bool | None = None


class _PodSpecJson(Wire):
    priority: Int32 | None = None
    priority_class_name: Text | None = None


class _PodJson(Wire):
    spec: _PodSpecJson | None = None


_CLASS: Final = msgspec.json.Decoder(_ClassJson)
_POD: Final = msgspec.json.Decoder(_PodJson)


@dataclass(frozen=True, slots=True)
class PriorityClasses:
    """values: priority by name of the class; default: of pods that name no class."""

    values: Mapping[str, int] = field(default_factory=dict)
    default: int = 0

    def applied(self, pod: PodInfo, item: bytes | Raw) -> PodInfo:
        """The pod with the priority that admission gives it; `item`: its JSON. A priority in the JSON stays."""
        spec = _POD.decode(item).spec or _PodSpecJson()
        if spec.priority is not None:
            return pod
        priority = self.default
        if spec.priority_class_name:
            priority = self.values.get(spec.priority_class_name, _BUILT_IN.get(spec.priority_class_name, self.default))
        return pod if priority == pod.priority else replace(pod, priority=priority)

    def unknown(self, pods: Iterable[bytes | Raw]) -> tuple[str, ...]:
        """Return the classes that pods name, by their JSON, where neither these nor the pods say their priority."""
        specs = (_POD.decode(item).spec or _PodSpecJson() for item in pods)
        wanted = {spec.priority_class_name or "" for spec in specs if spec.priority is None}
        return tuple(sorted(wanted - {"", *self.values, *_BUILT_IN}))


def priority_classes(items: Iterable[bytes | Raw]) -> PriorityClasses:
    """PriorityClasses decoded from their JSON. Raises UndecodableObject."""
    values: dict[str, int] = {}
    default = 0
    for item in items:
        try:
            found = _CLASS.decode(item)
        except REFUSED as error:
            raise UndecodableObject("PriorityClass", str(error)) from error
        values[found.metadata.name] = found.value
        if found.global_default:
            default = found.value
    return PriorityClasses(values, default)


T = TypeVar("T", bound=ApiObject)
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """What a file holds.

    skipped : how many objects of other kinds it has, by kind
    others  : namespaces and storage objects, by kind; kinds it has none of are missing
    further : JSON of all objects but nodes, pods and ReplicaSets, by API group and kind
    classes : PriorityClasses, by which pods without a priority of their own got theirs
    remarks : what is odd about the file and makes answers differ from the cluster's, a sentence each
    """

    nodes: tuple[NodeInfo, ...]
    pods: tuple[PodInfo, ...]
    replica_sets: tuple[ReplicaSetInfo, ...] = ()
    jobs: tuple[JobInfo, ...] = ()
    skipped: Mapping[str, int] | None = None
    others: Mapping[Kind, tuple[ApiObject, ...]] = field(default_factory=dict)
    further: Mapping[tuple[str, str], tuple[Raw, ...]] = field(default_factory=dict, compare=False, repr=False)
    classes: PriorityClasses = field(default_factory=PriorityClasses)
    remarks: tuple[str, ...] = field(default=(), compare=False)

    def of(self, watched: Watched[W]) -> tuple[W, ...]:
        """Objects of a resource that only some tables read. Raises UndecodableObject."""
        found = self.further.get((watched.group, watched.singular), ())
        return tuple(watched.decoded(item)[0] for item in found)

    def unread(self, read: Iterable[Watched[Any]]) -> dict[str, int]:
        """Number of objects per kind that neither the scorer, the filters nor these resources read."""
        known = {(one.group, one.singular) for one in read} | {PRIORITY_CLASS, *_KINDS}
        counts: Counter[str] = Counter()
        for (group, kind), items in self.further.items():
            if (group, kind) not in known:
                counts[f"{kind or 'without a kind'}.{group}" if group else kind or "without a kind"] += len(items)
        return dict(sorted(counts.items()))


def read_cluster_file(path: Path) -> ClusterObjects:
    """Read a file or folder, and log what is odd about it. Raises InputError if it is missing, unreadable, contradicts
    itself, or has no nodes."""
    objects, remarks = objects_of_cluster(path)
    try:
        found = _decoded(objects, remarks)
    except InputError as error:
        raise InputError(f"cluster file {path}: {error}") from error
    for remark in found.remarks:
        logger.warning("cluster file %s: %s", path, remark)
    return found


def objects_of_cluster(path: Path) -> tuple[list[ObjectInFile], tuple[str, ...]]:
    """JSON of the objects of a file or folder, each once, and remarks on those that were there twice. Raises
    InputError."""
    try:
        return unique_objects(objects_of_path(path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cluster file {path}: {reason}; export one with {EXPORT_COMMAND} > {path}") from error
    except NoObjects as error:
        raise InputError(f"cluster file {path}: {error}; export one with {EXPORT_COMMAND}") from error
    except InputError as error:
        raise InputError(f"cluster file {path}: {error}") from error


def parse_cluster(content: bytes) -> ClusterObjects:
    """The objects of the content of a file. Raises InputError."""
    return _decoded(*unique_objects(objects_of(content)))


def _decoded(objects: list[ObjectInFile], remarks: tuple[str, ...]) -> ClusterObjects:
    found: dict[Kind, list[ApiObject]] = {kind: [] for kind in Kind}
    skipped: Counter[str] = Counter()
    further: dict[tuple[str, str], list[Raw]] = {}
    try:
        classes = priority_classes(one.json for one in objects if (one.group, one.kind) == PRIORITY_CLASS)
        for one in objects:
            key = one.group, one.kind
            kind = _KINDS.get(key)
            if kind not in _WITHOUT_RAW:
                further.setdefault(key, []).append(one.json)
            if kind is None:
                skipped[one.kind or "without a kind"] += 1
                continue
            decoded = decode_object(kind, one.json)[0]
            found[kind].append(classes.applied(decoded, one.json) if isinstance(decoded, PodInfo) else decoded)
    except UndecodableObject as error:
        raise InputError(f"{error}; mend the object or leave it out") from error
    if not found[Kind.NODES]:
        n_others = sum(len(objects) for objects in found.values()) + skipped.total()
        kinds = ", ".join(f"{n} {kind}" for kind, n in skipped.most_common(3))
        raise InputError(
            f"no nodes among its {n_others} objects{f' ({kinds})' if kinds else ''}; export with {EXPORT_COMMAND}"
        )
    nodes, pods = _of(NodeInfo, found[Kind.NODES]), _of(PodInfo, found[Kind.PODS])
    unnamed = classes.unknown(one.json for one in objects if (one.group, one.kind) == ("", "Pod"))
    return ClusterObjects(
        nodes=nodes,
        pods=pods,
        replica_sets=_of(ReplicaSetInfo, found[Kind.REPLICA_SETS]),
        jobs=_of(JobInfo, found[Kind.JOBS]),
        skipped=dict(skipped),
        others={kind: tuple(objects) for kind, objects in found.items() if objects and kind not in SCORED_KINDS},
        further={key: tuple(items) for key, items in further.items()},
        classes=classes,
        remarks=(*remarks, *cluster_remarks(nodes, pods, further, unnamed, EXPORT_COMMAND)),
    )


def load_into(state: ClusterState, objects: ClusterObjects) -> list[Change]:
    """Make these the objects of the state, and all others gone. Owners first, so that each pod is settled once."""
    return [
        *state.replace(Kind.REPLICA_SETS, objects.replica_sets),
        *state.replace(Kind.JOBS, objects.jobs),
        *state.replace(Kind.NODES, objects.nodes),
        *state.replace(Kind.PODS, objects.pods),
    ]


def _of(wanted: type[T], objects: list[ApiObject]) -> tuple[T, ...]:
    return tuple(one for one in objects if isinstance(one, wanted))
