"""What is wrong with a cluster file: what it lacks, what it points to in vain, and objects that it holds more than
once. Each remark is one sentence that names the objects.

Tables keep objects by UID and by name: the second would replace the first, or its pods would count nowhere. So what
is the same is taken once, of two states of one object the newer counts, and what contradicts is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from base.errors import InputError
from kube.decoding.decoding import WATCHED, Kind
from kube.decoding.object_files import ObjectInFile
from kube.objects.counted_pods import FINISHED
from kube.objects.objects import NodeInfo, PodInfo
from kube.objects.watched_objects import version_number

_NAMED: Final = 3

_CAPACITY: Final = ("cpu", "memory", "pods")

_FEW_NAMESPACES: Final = ({"default"}, {"default", "kube-system"})
"""What kubectl exports without -A, and kubectl cluster-info dump without --all-namespaces."""

_OF_GROUPS: Final = {kind.singular for kind, watched in WATCHED.items() if watched.group}
_EXACT: Final = {kind.singular.lower(): kind.singular for kind in Kind}


class _MetadataJson(msgspec.Struct, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _IdentityJson(msgspec.Struct):
    metadata: _MetadataJson | None = None


_identity: Final = msgspec.json.Decoder(_IdentityJson)

_Key = tuple[str, str, str, str]
"""API group, kind, namespace, name."""


def unique_objects(objects: Iterable[ObjectInFile]) -> tuple[list[ObjectInFile], tuple[str, ...]]:
    """Each object once, in the order of the file; and what was left out, a sentence for people each.

    Raises InputError where two contradict each other: one name with two UIDs, one UID with two names, or two contents
    of which neither is the newer one.
    """
    kept: dict[_Key | int, ObjectInFile] = {}
    metadata_of: dict[_Key, _MetadataJson] = {}
    key_of_uid: dict[tuple[str, str, str], _Key] = {}  # UIDs are unique; other API groups may show the same object
    same, older = list[str](), list[str]()
    for position, one in enumerate(objects):
        found = _metadata(one.json)
        if found is None or not found.name:
            kept[position] = one  # its decoder says what is wrong with it
            continue
        key = one.group, one.kind, found.namespace or "default", found.name
        if found.uid:
            first = key_of_uid.setdefault((one.group, one.kind, found.uid), key)
            if first != key:
                names = f"{_named(first[1], metadata_of[first])} and {_named(one.kind, found)}"
                raise InputError(
                    f"{names} have the same UID {found.uid}: a UID belongs to one object; leave one of them out, or "
                    "leave metadata.uid out of a copy"
                )
        before = metadata_of.get(key)
        if before is None:
            kept[key], metadata_of[key] = one, found
            continue
        newer = _newer(kept[key], before, one, found)
        if newer is None:
            same.append(_named(one.kind, found))
            continue
        later = found if newer is one else before
        older.append(
            f"{_named(one.kind, found)} with resourceVersion {before.resource_version} and {found.resource_version}, "
            f"{later.resource_version} counts"
        )
        kept[key], metadata_of[key] = newer, later
    return list(kept.values()), (*_remarks(same, older),)


def _remarks(same: list[str], older: list[str]) -> Iterable[str]:
    if same:
        yield f"it holds {_number(same)} more than once, each time the same ({named(same)}): each counts once"
    if older:
        yield f"it holds {_number(older)} in two states: the newer counts ({named(older)})"


def _newer(
    first: ObjectInFile, before: _MetadataJson, second: ObjectInFile, after: _MetadataJson
) -> ObjectInFile | None:
    """The state that counts; None = both are the same. Raises InputError where that is open."""
    if before.uid and after.uid and before.uid != after.uid:
        raise InputError(
            f"{_named(second.kind, after)} is there with two UIDs, {before.uid} and {after.uid}: these are two "
            "clusters, or two moments of one; export one cluster at one moment"
        )
    if bytes(first.json) == bytes(second.json):
        return None
    states: list[Any] = [msgspec.json.decode(one.json) for one in (first, second)]
    for state in states:  # a list may leave out what another one says
        state.pop("kind", None)
        state.pop("apiVersion", None)
    if states[0] == states[1]:
        return None
    old, new = (version_number(one.resource_version) for one in (before, after))
    if old is not None and new is not None and old != new:
        return second if new > old else first
    if old is not None and old == new and first.api_version != second.api_version:
        return None  # one state in two versions of its API
    raise InputError(
        f"{_named(second.kind, after)} is there twice, with different {_difference(*states)}, and no "
        "resourceVersion says which one is newer: leave one of them out"
    )


def named(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _metadata(json: Raw) -> _MetadataJson | None:
    try:
        return _identity.decode(json).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _number(names: list[str]) -> str:
    return f"{len(names)} object{'s' if len(names) > 1 else ''}"


def called(json: Raw) -> str:
    """Namespace and name of an object, for people."""
    found = _metadata(json)
    return _named("", found).strip() if found is not None and found.name else "without a name"


def _named(kind: str, metadata: _MetadataJson) -> str:
    return f"{kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else f"{kind} {metadata.name}"


def _difference(first: Any, second: Any, path: str = "") -> str:
    """The first field in which they differ."""
    while isinstance(first, dict) and isinstance(second, dict):
        missing = object()
        for key in sorted({*first, *second}):
            if first.get(key, missing) != second.get(key, missing):
                path = f"{path}.{key}" if path else key
                first, second = first.get(key), second.get(key)
                break
        else:
            break
    return path or "content"


def cluster_remarks(
    nodes: Sequence[NodeInfo],
    pods: Sequence[PodInfo],
    further: Mapping[tuple[str, str], Sequence[Raw]],
    unknown_classes: Sequence[str],
    export: str,
) -> Iterator[str]:
    """
    further         : objects of all other kinds, by API group and kind
    unknown_classes : PriorityClasses that pods name and the file does not hold
    export          : the command that exports all
    """
    yield from _of_pods(pods, export)
    yield from _of_nodes(nodes)
    yield from _of_seats(nodes, pods)
    if unknown_classes:
        yield (
            f"pods name the PriorityClasses {named(unknown_classes)}, which it does not hold, and say no priority of "
            "their own: they count with the default; export priorityclasses, too"
        )
    yield from _of_kinds(further)


def _of_pods(pods: Sequence[PodInfo], export: str) -> Iterator[str]:
    if not pods:
        yield f"it has no pods: every node counts as empty; export pods, too, with {export}"
    elif (there := {pod.namespace for pod in pods}) in _FEW_NAMESPACES:
        yield (
            f"its {len(pods)} pods are all in {' and '.join(sorted(there))}: if the cluster has other namespaces, its "
            f"nodes are fuller than they count here; export all with -A (a dump: --all-namespaces)"
        )


def _of_nodes(nodes: Sequence[NodeInfo]) -> Iterator[str]:
    bare = [node.name for node in nodes if not node.allocatable]
    if bare:
        yield (
            f"{len(bare)} of {len(nodes)} nodes have no status.allocatable ({named(bare)}): their capacity is unknown, "
            "no pod that requests something fits there; export nodes with their status"
        )
    for resource in _CAPACITY:
        without = [node.name for node in nodes if node.allocatable and resource not in node.allocatable]
        if without:
            yield (
                f"{len(without)} of {len(nodes)} nodes have no {resource} in status.allocatable ({named(without)}): "
                "they count as having none"
            )


def _of_seats(nodes: Sequence[NodeInfo], pods: Sequence[PodInfo]) -> Iterator[str]:
    there = {node.name for node in nodes}
    lost = [pod for pod in pods if pod.node and pod.node not in there and pod.phase not in FINISHED]
    if lost:
        where = sorted({pod.node for pod in lost})
        yield (
            f"{len(lost)} pods ({named([f'{pod.namespace}/{pod.name}' for pod in lost])}) are bound to nodes that it "
            f"does not hold ({named(where)}): they load no node; export all nodes"
        )


def _of_kinds(further: Mapping[tuple[str, str], Sequence[Raw]]) -> Iterator[str]:
    for (group, kind), items in further.items():
        names = named([called(item) for item in items])
        if not kind:
            yield f"{len(items)} objects say no kind and are not read ({names})"
        elif not group and kind in _OF_GROUPS:
            yield f"{len(items)} objects of kind {kind} say no apiVersion and are not read ({names})"
        elif kind not in _EXACT.values() and (exact := _EXACT.get(kind.lower())) is not None:
            yield f"{len(items)} objects of kind {kind} are not read ({names}): did you mean {exact}?"
