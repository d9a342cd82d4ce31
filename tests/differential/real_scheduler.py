"""What a real kube-scheduler says of pods in a random cluster.

All objects are written while no kube-scheduler runs; it is started afresh for each cluster, so that it knows all of
them before it looks at the first pod. Nothing is bound: the probe extender answers an error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kube.decoding.decoding import Kind
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.binaries import kubernetes_version
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.probe_extender import PROBE_ERROR, ProbeExtender
from tests.differential.our_filters import KINDS
from tests.placement.random_cluster import CLASSES, RandomCluster
from tests.placement.random_labels import NAMESPACES
from tests.placement.random_pods import replica_sets
from tests.placement.random_storage import ephemeral_claims

_SECONDS = 60.0

_WRITTEN = (
    "pods",
    "persistentvolumeclaims",
    "persistentvolumes",
    "volumeattachments",
    "csistoragecapacities",
    "csinodes",
    "csidrivers",
    "storageclasses",
    "nodes",
)
"""What clusters are made of, those that refer to others first. Namespaces stay: nobody would finish their deletion."""


@dataclass(frozen=True, slots=True)
class RealVerdict:
    """Nodes that kube-scheduler sent to /filter, none if it found none; its words in the PodScheduled condition."""

    passing: frozenset[str]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Observed:
    """One cluster.

    objects  : as the API server returns them, the probes among the pods, by kind
    verdicts : by name of the probe
    """

    objects: Mapping[Kind, Sequence[Manifest]]
    verdicts: Mapping[str, RealVerdict]


@dataclass(frozen=True, slots=True)
class Placed:
    """One cluster, with the nodes that kube-scheduler chose, by name of the probe, and its log of them."""

    objects: Mapping[Kind, Sequence[Manifest]]
    chosen: Mapping[str, str]
    log: str


class RealScheduler:
    """Context manager: a control plane, and a kube-scheduler while it is asked.

    verb, arguments : when the probe extender is called (filter, bind), and flags of kube-scheduler
    """

    def __init__(self, verb: str = "filter", arguments: Sequence[str] = ()) -> None:
        self._running = ExitStack()
        self._probe = ProbeExtender()
        self._verb, self._arguments = verb, arguments

    def __enter__(self) -> Self:
        self._plane = self._running.enter_context(control_plane())
        try:
            self._probe.__enter__()
            self._writer = ClusterWriter(self._plane)
            self._writer.create_many(CLASSES)
            self._create_namespaces({name: {} for name in NAMESPACES})
            self._writer.create_many(replica_sets())
            self._scheduler = KubeScheduler(
                self._plane,
                [self._probe.settings(self._verb)],
                verbosity=0,
                arguments=self._arguments,
                # A pod that the probe turned down is not tried again while the others wait.
                settings={"podInitialBackoffSeconds": 60, "podMaxBackoffSeconds": 60},
            )
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._scheduler.kill()
        self._writer.close()
        self._probe.__exit__(kind, error, traceback)
        self._running.close()

    def observe(self, cluster: RandomCluster) -> Observed:
        """Write the cluster in place of the one before, and hear what kube-scheduler says of its probes."""
        self._clear()
        self._write(cluster)
        self._create_pods(cluster.probes)
        self._probe.sent.clear()
        try:
            self._scheduler.start()
            verdicts = self._await_verdicts({probe["metadata"]["name"] for probe in cluster.probes})
        finally:
            self._scheduler.kill()
        return Observed(self._list(), verdicts)

    def place_one_by_one(self, cluster: RandomCluster) -> Placed:
        """Write the cluster, and let kube-scheduler choose nodes for its probes; needs the verb bind.

        One after the other: for as long as one may be bound the next would count it. Not with volumes: these would
        really be bound before the pod.
        """
        self._clear()
        self._write(cluster)
        self._probe.chosen.clear()
        self._scheduler.log.unlink(missing_ok=True)
        try:
            self._scheduler.start()
            for probe in cluster.probes:
                self._create_pods([probe])
                self._await_verdicts({probe["metadata"]["name"]})
        finally:
            self._scheduler.kill()
        objects = self._list()
        name_of = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in objects[Kind.PODS]}
        chosen = {name_of[uid]: node for uid, node in self._probe.chosen.items()}
        return Placed(objects, chosen, self._scheduler.log.read_text())

    def _list(self) -> dict[Kind, list[Manifest]]:
        return {kind: self._writer.list_all(kind.value) for kind in KINDS}

    def _clear(self) -> None:
        for plural in _WRITTEN:
            items = self._writer.list_all(plural)
            guarded = [item for item in items if item["metadata"].get("finalizers")]
            self._writer.in_parallel(lambda one: self._writer.patch(one, {"metadata": {"finalizers": None}}), guarded)
            self._writer.delete_many(items)

    def _write(self, cluster: RandomCluster) -> None:
        self._create_namespaces(cluster.namespaces)
        self._writer.create_many((*cluster.others, *cluster.nodes))
        self._create_pods(cluster.sitting)
        going = [one for one in cluster.sitting if one["metadata"]["name"] in cluster.terminating]
        self._writer.in_parallel(lambda one: self._writer.delete(one, grace_seconds=600), going)

    def _create_namespaces(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        present = {item["metadata"]["name"]: item for item in self._writer.list_all("namespaces")}
        for name, labels in namespaces.items():
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}
            if name not in present:
                self._writer.create(manifest)
                continue
            gone = set(present[name]["metadata"].get("labels", {})) - set(labels) - {"kubernetes.io/metadata.name"}
            self._writer.patch(manifest, {"metadata": {"labels": dict.fromkeys(gone) | dict(labels)}})

    def _create_pods(self, pods: Sequence[Manifest]) -> None:
        if kubernetes_version() < "1.36":  # whose API server refuses this action of a restart rule
            pods = json.loads(json.dumps(pods).replace('"RestartAllContainers"', '"Restart"'))
        created = self._writer.create_many(pods)
        self._writer.create_many(claim for pod in created for claim in ephemeral_claims(pod))

    def _await_verdicts(self, names: set[str]) -> dict[str, RealVerdict]:
        deadline = time.monotonic() + _SECONDS
        while True:
            pods = self._writer.list_all("pods", field_selector="spec.nodeName=")
            found = {pod["metadata"]["name"]: self._verdict(pod) for pod in pods}
            verdicts = {name: said for name, said in found.items() if name in names and said is not None}
            if len(verdicts) == len(names):
                return verdicts
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"no word of {sorted(names - set(verdicts))[:5]} in {_SECONDS:g} s: {self._scheduler.end_of_log()}"
                )
            time.sleep(0.05)

    def _verdict(self, pod: Manifest) -> RealVerdict | None:
        for condition in pod["status"].get("conditions", ()):
            if condition["type"] != "PodScheduled" or condition["status"] != "False":
                continue
            reason, message = condition["reason"], condition.get("message", "")
            if reason == "SchedulerError":
                # Any other error than the probe's must be seen: no set of nodes would be right.
                assert PROBE_ERROR in message, f"kube-scheduler failed on {pod['metadata']['name']}: {message}"
                return RealVerdict(self._probe.sent.get(pod["metadata"]["uid"], frozenset()), reason, message)
            return RealVerdict(frozenset(), reason, message)
        return None
