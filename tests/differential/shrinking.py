"""A smaller cluster in which a probe still differs: objects and constraints are taken away as long as it does.

Zeller & Hildebrandt 2002, "Simplifying and Isolating Failure-Inducing Input", by halves down to single ones.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from testing.servers.cluster_objects import Manifest
from tests.placement.random_cluster import RandomCluster

Differs = Callable[[RandomCluster], bool]


def shrunk(cluster: RandomCluster, probe: str, differs: Differs, *, most_trials: int = 150) -> RandomCluster:
    """The smallest cluster with this probe alone that was found to differ within that many trials."""
    left = [most_trials]

    def still(smaller: RandomCluster) -> bool:
        left[0] -= 1
        return left[0] >= 0 and differs(smaller)

    small = replace(cluster, probes=tuple(one for one in cluster.probes if one["metadata"]["name"] == probe))
    if not still(small):
        return small
    for field in ("sitting", "nodes", "others"):
        small = _fewer(small, field, still)
    for field in ("probes", "nodes", "sitting"):
        small = _plainer(small, field, still)
    return small


def describe(cluster: RandomCluster) -> str:
    """The cluster as one JSON object per line."""
    parts = (*cluster.others, *cluster.nodes, *cluster.sitting, *cluster.probes)
    return "\n".join(
        [
            json.dumps({"namespaces": cluster.namespaces, "terminating": sorted(cluster.terminating)}),
            *(json.dumps({k: v for k, v in part.items() if k != "apiVersion"}) for part in parts),
        ]
    )


def _fewer(cluster: RandomCluster, field: str, still: Differs) -> RandomCluster:
    items: Sequence[Manifest] = getattr(cluster, field)
    size = len(items)
    while size:
        start = 0
        while start < len(items):
            smaller = _with(cluster, field, (*items[:start], *items[start + size :]))
            if smaller.nodes and still(smaller):
                cluster, items = smaller, getattr(smaller, field)
            else:
                start += size
        size //= 2
    return cluster


def _plainer(cluster: RandomCluster, field: str, still: Differs) -> RandomCluster:
    again = True
    while again:
        again = False
        items: Sequence[Manifest] = getattr(cluster, field)
        for number, item in enumerate(items):
            for plainer in _plainer_objects(item):
                smaller = _with(cluster, field, (*items[:number], plainer, *items[number + 1 :]))
                if _is_valid(still, smaller):
                    cluster, again = smaller, True
                    break
            if again:
                break
    return cluster


def _with(cluster: RandomCluster, field: str, items: tuple[Manifest, ...]) -> RandomCluster:
    changed: dict[str, Any] = {field: items}
    return replace(cluster, **changed)


def _is_valid(still: Differs, cluster: RandomCluster) -> bool:
    try:
        return still(cluster)
    except RuntimeError:
        return False  # the API server refuses what is left


def _plainer_objects(manifest: Manifest) -> Iterator[Manifest]:
    """The object without one of the things that it says, each in turn; the largest come first."""
    for path in sorted(_paths({key: manifest[key] for key in ("spec", "status") if key in manifest}), key=len):
        if path[0] == "status" and len(path) == 1:
            continue
        if path[-1] in ("nodeName", "containers", "priorityClassName", "name", "image", "schedulerName", "spec"):
            continue
        yield _without(manifest, path)
    for label in manifest["metadata"].get("labels", {}):
        yield _without(manifest, ("metadata", "labels", label))


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list) and len(value) > 1:
        items = iter(enumerate(value))
    elif isinstance(value, list):
        items = iter([(0, value[0])] if value else [])
    for key, inner in items:
        yield (*before, key)
        yield from _paths(inner, (*before, key))


def _without(manifest: Manifest, path: tuple[Any, ...]) -> Manifest:
    found = copy.deepcopy(manifest)
    inner: Any = found
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return found
