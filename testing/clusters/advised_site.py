"""A real API server with nodes, services and a model of them, whose pods an advisor may place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from placement.gate_exemptions import ADVICE
from testing.clusters.large_cluster import large_cluster
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually

N_NODES, N_SERVICES = 6, 3


@dataclass
class Site:
    """sets: a ReplicaSet of each service; models: directory of the registry that knows them."""

    plane: ControlPlane
    writer: ClusterWriter
    sets: Sequence[Manifest]
    models: Path

    def pods(self, prefix: str, n: int, *, gates: Sequence[str] = (ADVICE,), **spec: Any) -> list[Manifest]:
        """Create pods of all services in turn, held by these gates. spec: further fields of it."""
        return self.writer.create_many(
            pod_of(f"{prefix}-{i:04d}", self.sets[i % len(self.sets)], gates, **spec) for i in range(n)
        )

    def stored(self, prefix: str = "") -> list[Manifest]:
        """All pods whose names begin so."""
        return [one for one in self.writer.list_all("pods") if one["metadata"]["name"].startswith(prefix)]

    def held(self) -> list[str]:
        """Names of pods that our gate holds."""
        return [
            one["metadata"]["name"]
            for one in self.stored()
            if any(gate["name"] == ADVICE for gate in one["spec"].get("schedulingGates", []))
        ]

    def n_bound(self, prefix: str = "") -> int:
        """Pods that have a node."""
        return sum(1 for one in self.stored(prefix) if one["spec"].get("nodeName"))

    def await_bound(self, n: int, prefix: str = "", *, log: Callable[[], str] = lambda: "") -> None:
        """Wait until as many pods have a node."""
        assert eventually(lambda: self.n_bound(prefix) == n), f"{self.n_bound(prefix)} of {n}: {log()[-3000:]}"


def pod_of(name: str, owner: Manifest, gates: Sequence[str] = (), **spec: Any) -> Manifest:
    """Return a pod of a ReplicaSet, held by these gates. spec: further fields of it"""
    made = pod(
        name,
        namespace=owner["metadata"]["namespace"],
        owner=owner,
        labels=owner["spec"]["selector"]["matchLabels"],
    )
    made["spec"] |= {"schedulingGates": [{"name": gate} for gate in gates]} | spec
    return made


def note_of(stored: Manifest) -> dict[str, Any]:
    """What the advisor wrote on a pod; {} = nothing."""
    return dict(json.loads(stored["metadata"].get("annotations", {}).get(ADVICE, "{}")))


@contextmanager
def advised_site(directory: Path) -> Iterator[Site]:
    """Yield it, with its models below `directory`."""
    made = large_cluster(N_NODES, 60, N_SERVICES, first_day=datetime.now(UTC).date())
    Registry(str(directory / "models")).publish(artefact_of(made.model, datetime.now(UTC)))
    with control_plane() as plane, ClusterWriter(plane) as writer:
        for name in ("forecast-scheduler", *sorted({service.namespace for service in made.model.services})):
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        writer.create_many(node(one.name, cpu="64", memory="256Gi", pods=1000) for one in made.nodes)
        sets = writer.create_many(
            replica_set(f"{one.name}-5d9c7b6f4d", namespace=one.namespace, deployment=one.name, desired_replicas=100)
            for one in made.model.services
        )
        yield Site(plane, writer, sets, directory / "models")
