"""Nodes, running pods and their owners as the API server lists them now, for what kube-state-metrics would say."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from forecast.service_key import Owner
from kube.decoding.decoding import ApiObject, Kind
from kube.decoding.jobs import JobInfo
from kube.objects.objects import NodeInfo, PodInfo, PodPhase, ReplicaSetInfo


@dataclass(frozen=True, slots=True)
class OwnedPod:
    """A pod that runs on a node. top: the controller of its controller; None = not known, empty = it has none"""

    pod: PodInfo
    top: Owner | None


class ListedPods:
    """A sink of kube.client.kubernetes_source. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, NodeInfo] = {}
        self._pods: dict[str, PodInfo] = {}
        self._owners: dict[Kind, dict[str, Owner]] = {Kind.REPLICA_SETS: {}, Kind.JOBS: {}}

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """These are all objects of the kind."""
        with self._lock:
            if kind is Kind.NODES:
                self._nodes.clear()
            elif kind is Kind.PODS:
                self._pods.clear()
            else:
                self._owners[kind].clear()
            for one in objects:
                self._put(kind, one)

    def put(self, kind: Kind, obj: ApiObject) -> None:
        """An object is new or has changed."""
        with self._lock:
            self._put(kind, obj)

    def delete(self, kind: Kind, obj: ApiObject) -> None:
        """An object is gone."""
        with self._lock:
            if isinstance(obj, NodeInfo):
                self._nodes.pop(obj.name, None)
            elif isinstance(obj, PodInfo):
                self._pods.pop(obj.uid, None)
            elif isinstance(obj, ReplicaSetInfo | JobInfo):
                self._owners[kind].pop(obj.uid, None)

    def nodes(self) -> list[NodeInfo]:
        """All nodes, by name."""
        with self._lock:
            return sorted(self._nodes.values(), key=lambda node: node.name)

    def running(self) -> list[OwnedPod]:
        """The pods that run, in no particular order."""
        with self._lock:
            owners = self._owners[Kind.REPLICA_SETS] | self._owners[Kind.JOBS]
            return [
                OwnedPod(pod, owners.get(pod.owner_uid))
                for pod in self._pods.values()
                if pod.phase is PodPhase.RUNNING and pod.node
            ]

    def _put(self, kind: Kind, obj: ApiObject) -> None:
        if isinstance(obj, NodeInfo):
            self._nodes[obj.name] = obj
        elif isinstance(obj, PodInfo):
            self._pods[obj.uid] = obj
        elif isinstance(obj, ReplicaSetInfo | JobInfo):
            self._owners[kind][obj.uid] = obj.owner
