"""A small cluster with a model to match, and a Prometheus that measures its nodes every second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from forecast.resources import RESOURCES
from testing.clusters.large_cluster import LargeCluster, large_cluster
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running

N_NODES, N_PODS, N_SERVICES = 30, 200, 20
USED_SHARE = 0.25
"""Of each node's capacity: what is measured."""


@dataclass(frozen=True, slots=True)
class Scenery:
    """truth: objects and model; deployments: the ReplicaSet of each service as the API server has it."""

    truth: LargeCluster
    deployments: Mapping[str, Manifest]

    @property
    def nodes(self) -> list[str]:
        """Names."""
        return [one.name for one in self.truth.nodes]

    def pod(self, name: str, *, service: int = 0, cpu: str = "250m", **extra: object) -> Manifest:
        """Another pod of a service that the model knows."""
        key = self.truth.model.services[service]
        owner = self.deployments[key.name]
        return pod(name, namespace=key.namespace, owner=owner, cpu=cpu, memory="512Mi", **extra)  # type: ignore[arg-type]


def scenery(writer: ClusterWriter, seed: int = 0) -> Scenery:
    """Write the cluster to an API server."""
    truth = large_cluster(N_NODES, N_PODS, N_SERVICES, first_day=datetime.now(UTC).date(), seed=seed)
    for namespace in sorted({service.namespace for service in truth.model.services}):
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    writer.create_many(
        node(one.name, cpu=str(int(one.capacity["cpu"])), memory=str(int(one.capacity["memory"])))
        for one in truth.nodes
    )
    sets = writer.create_many(
        replica_set(
            f"{service.name}-5d9c7b6f4d",
            namespace=service.namespace,
            deployment=service.name,
            desired_replicas=N_PODS // N_SERVICES,
        )
        for service in truth.model.services
    )
    deployments = {service.name: made for service, made in zip(truth.model.services, sets, strict=True)}
    of_set = {made["metadata"]["name"]: made for made in sets}
    writer.create_many(
        pod(
            one.name,
            namespace=one.namespace,
            node=one.node,
            owner=of_set[one.owner.name],
            cpu="250m",
            memory="512Mi",
            status=running(),
        )
        for one in truth.pods
    )
    return Scenery(truth, deployments)


def publish(directory: Path, truth: LargeCluster) -> str:
    """Publish the model; returns its version."""
    return Registry(str(directory)).publish(artefact_of(truth.model, datetime.now(UTC)))


def usage_rules(path: Path, truth: LargeCluster) -> Path:
    """Recording rules that give every node a usage of USED_SHARE, each second: as fresh as if it were scraped."""
    rules = [
        {
            "record": "forecast:node_usage",
            "labels": {"node": name, "resource": resource.name},
            "expr": f"vector({float(capacity) * USED_SHARE!r})",
        }
        for name, row in zip(truth.model.nodes, truth.model.node_capacity.tolist(), strict=True)
        for resource, capacity in zip(RESOURCES, row, strict=True)
    ]
    path.write_text(yaml.safe_dump({"groups": [{"name": "usage", "interval": "1s", "rules": rules}]}))
    return path
