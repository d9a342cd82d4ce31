"""A cluster of manifests as filters see it: decoded, in the scorer's tables and the index."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from cluster.tracking import TrackedCluster
from kube.decoding.decoding import ApiObject, Kind, decode_object, decode_pod
from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.filter import ClusterView, Filter, rejected
from placement.index.index import PlacementIndex
from scorer.options import ScorerOptions

KIND_OF = {kind.singular: kind for kind in Kind}


def decoded(manifest: Mapping[str, Any]) -> ApiObject:
    """A manifest as an object."""
    return decode_object(KIND_OF[manifest["kind"]], json.dumps(manifest).encode())[0]


class StorageCluster:
    """Nodes, pods that sit and storage objects, put in one by one."""

    def __init__(
        self, manifests: Iterable[Mapping[str, Any]] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tracked = TrackedCluster(ScorerOptions(), now=0.0)
        self.state = self._tracked.state
        self.index = PlacementIndex(self.state, clock=clock)
        self.view = ClusterView(self._tracked, self.index)
        for manifest in manifests:
            self.put(manifest)

    def put(self, manifest: Mapping[str, Any]) -> None:
        """An object is new or has changed."""
        item = decoded(manifest)
        match item:
            case NodeInfo():
                self.index.apply(self.state.put_node(item))
            case PodInfo():
                self.index.apply(self.state.put_pod(item))
            case _:
                self.index.put(KIND_OF[manifest["kind"]], item)

    def delete(self, manifest: Mapping[str, Any]) -> None:
        """An object is gone."""
        item = decoded(manifest)
        match item:
            case NodeInfo():
                self.index.apply(self.state.delete_node(item.name))
            case PodInfo():
                self.index.apply(self.state.delete_pod(item.uid))
            case _:
                self.index.delete(KIND_OF[manifest["kind"]], item)

    def passing(self, one: Filter, pod: PodInfo | Mapping[str, Any]) -> set[str]:
        """Nodes that a filter lets a pod go to."""
        info = pod if isinstance(pod, PodInfo) else decode_pod(pod)
        nodes = rejected(one.filter(info, self.view), self.view.n_rows)
        return {self.state.names[row] for row in np.flatnonzero(self.state.alive & ~nodes)}

    def reasons(self, one: Filter, pod: PodInfo | Mapping[str, Any]) -> dict[str, dict[str, bool]]:
        """By node that is rejected: why, and whether eviction may help."""
        info = pod if isinstance(pod, PodInfo) else decode_pod(pod)
        found: dict[str, dict[str, bool]] = {}
        for rejection in one.filter(info, self.view):
            assert rejection.nodes.shape == (self.view.n_rows,)
            for row in np.flatnonzero(rejection.nodes & self.state.alive):
                found.setdefault(self.state.names[row], {})[rejection.reason] = rejection.preemptible
        return found
