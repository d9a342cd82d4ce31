"""What lacks in a cluster file, or points to what is not in it, so that answers differ from those of the cluster.

Each remark is one sentence that names the objects. A complete export has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Raw

from cluster.tables.same_objects import called, named
from kube.decoding.decoding import WATCHED, Kind
from kube.objects.objects import NodeInfo, PodInfo
from kube.objects.pod_accounting import FINISHED

_CAPACITY: Final = ("cpu", "memory", "pods")
_FEW_NAMESPACES: Final = ({"default"}, {"default", "kube-system"})
"""What kubectl exports without -A, and kubectl cluster-info dump without --all-namespaces."""

_OF_GROUPS: Final = {kind.singular for kind, watched in WATCHED.items() if watched.group}
_EXACT: Final = {kind.singular.lower(): kind.singular for kind in Kind}


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
