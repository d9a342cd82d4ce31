"""A cluster from a file, as `kubectl get nodes,pods,replicasets,jobs -A -o json` writes it; YAML will do, too.

Namespaces and storage objects, which only filters read, may be in it (EXPORT_FOR_FILTERS), and so may all that our
scheduling loops watch (docs/use/scheduling.md has the command): `ClusterObjects.of` decodes those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Raw

from forecast.errors import InputError
from kube.decoding.decoding import SCORED_KINDS, ApiObject, Kind, decode_object
from kube.decoding.jobs import JobInfo
from kube.decoding.priority_classes import PRIORITY_CLASS, PriorityClasses, priority_classes
from kube.decoding.watched_kinds import UndecodableObject, Watched
from kube.objects.objects import NodeInfo, PodInfo, ReplicaSetInfo
from kube.tables.changes import Change
from kube.tables.state import ClusterState

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

_YAML: Final = frozenset({".yaml", ".yml"})

T = TypeVar("T", bound=ApiObject)
W = TypeVar("W")


class _Typed(msgspec.Struct, rename="camel"):
    """What says which type an object is of. Items of a NodeList and the like do not; then the list does."""

    kind: str = ""
    api_version: str = ""
    items: list[Raw] | None = None


_typed_decoder = msgspec.json.Decoder(_Typed)


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """What a file holds.

    skipped : how many objects of other kinds it has, by kind
    others  : namespaces and storage objects, by kind; kinds it has none of are missing
    further : JSON of all objects but nodes, pods and ReplicaSets, by API group and kind
    classes : PriorityClasses, by which pods without a priority of their own got theirs
    """

    nodes: tuple[NodeInfo, ...]
    pods: tuple[PodInfo, ...]
    replica_sets: tuple[ReplicaSetInfo, ...] = ()
    jobs: tuple[JobInfo, ...] = ()
    skipped: Mapping[str, int] | None = None
    others: Mapping[Kind, tuple[ApiObject, ...]] = field(default_factory=dict)
    further: Mapping[tuple[str, str], tuple[Raw, ...]] = field(default_factory=dict, compare=False, repr=False)
    classes: PriorityClasses = field(default_factory=PriorityClasses)

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
    """Read a file. Raises InputError if it is missing, unreadable, or has no nodes."""
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cluster file {path}: {reason}; export one with {EXPORT_COMMAND} > {path}") from error
    try:
        return parse_cluster(_json_from_yaml(content) if path.suffix in _YAML else content)
    except InputError as error:
        raise InputError(f"cluster file {path}: {error}") from error


def parse_cluster(content: bytes) -> ClusterObjects:
    """The objects of a List, of a list of one kind, or one object alone, in JSON."""
    found: dict[Kind, list[ApiObject]] = {kind: [] for kind in Kind}
    skipped: Counter[str] = Counter()
    further: dict[tuple[str, str], list[Raw]] = {}
    try:
        items = list(_items(Raw(content), "", ""))
        classes = priority_classes(item for version, name, item in items if (_group(version), name) == PRIORITY_CLASS)
        for api_version, kind_name, item in items:
            key = _group(api_version), kind_name
            kind = _KINDS.get(key)
            if kind not in _WITHOUT_RAW:
                further.setdefault(key, []).append(item)
            if kind is None:
                skipped[kind_name or "without a kind"] += 1
                continue
            decoded = decode_object(kind, item)[0]
            found[kind].append(classes.applied(decoded, item) if isinstance(decoded, PodInfo) else decoded)
    except UndecodableObject as error:
        raise InputError(f"{error}; mend the object or leave it out") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"not a list of objects in JSON ({error}); export one with {EXPORT_COMMAND}") from error
    if not found[Kind.NODES]:
        n_others = sum(len(objects) for objects in found.values()) + skipped.total()
        raise InputError(f"no nodes among its {n_others} objects; export with {EXPORT_COMMAND}")
    return ClusterObjects(
        nodes=_of(NodeInfo, found[Kind.NODES]),
        pods=_of(PodInfo, found[Kind.PODS]),
        replica_sets=_of(ReplicaSetInfo, found[Kind.REPLICA_SETS]),
        jobs=_of(JobInfo, found[Kind.JOBS]),
        skipped=dict(skipped),
        others={kind: tuple(objects) for kind, objects in found.items() if objects and kind not in SCORED_KINDS},
        further={key: tuple(items) for key, items in further.items()},
        classes=classes,
    )


def load_into(state: ClusterState, objects: ClusterObjects) -> list[Change]:
    """Make these the objects of the state, and all others gone. Owners first, so that each pod is settled once."""
    return [
        *state.replace(Kind.REPLICA_SETS, objects.replica_sets),
        *state.replace(Kind.JOBS, objects.jobs),
        *state.replace(Kind.NODES, objects.nodes),
        *state.replace(Kind.PODS, objects.pods),
    ]


def _items(raw: Raw, api_version: str, kind: str) -> Iterator[tuple[str, str, Raw]]:
    """apiVersion, kind and JSON of each object, lists within lists opened. Defaults: what the list around it says."""
    typed = _typed_decoder.decode(raw)
    api_version, kind = typed.api_version or api_version, typed.kind or kind
    if typed.items is None:
        yield api_version, kind, raw
        return
    of_items = kind.removesuffix("List")
    for item in typed.items:
        yield from _items(item, api_version if of_items else "", of_items)


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _of(wanted: type[T], objects: list[ApiObject]) -> tuple[T, ...]:
    return tuple(one for one in objects if isinstance(one, wanted))


def _json_from_yaml(content: bytes) -> bytes:
    """All documents of a YAML file as one List in JSON."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = [document for document in yaml.load_all(content, Loader=loader) if document is not None]
        return msgspec.json.encode({"kind": "List", "items": documents})
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.EncodeError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"not YAML of objects ({' '.join(str(error).split())})") from error
