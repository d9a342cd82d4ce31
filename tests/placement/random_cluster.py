"""A random cluster below 100 nodes (kube-scheduler looks at all of them then), and pods that ask for a place in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from testing.servers.cluster_objects import Manifest
from tests.placement.random_labels import NAMESPACES, often, random_namespaces
from tests.placement.random_nodes import random_node
from tests.placement.random_pods import OVERHEAD_CLASS, PROBE_CLASS, random_probe, random_sitting_pod
from tests.placement.random_storage import random_storage, random_volumes

CLASSES: Final[tuple[Manifest, ...]] = (
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PROBE_CLASS},
        "value": 10,
        "preemptionPolicy": "Never",
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": OVERHEAD_CLASS},
        "handler": "sandboxed",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    },
)
"""What pods refer to, the same for all clusters."""


@dataclass(frozen=True, slots=True)
class RandomCluster:
    """Manifests.

    namespaces  : labels by name
    others      : volumes, claims, classes
    sitting     : pods bound to a node, of which some nodes do not exist
    terminating : names of the sitting pods that have been told to go
    probes      : pods to be placed
    """

    namespaces: Mapping[str, Mapping[str, str]]
    nodes: tuple[Manifest, ...]
    others: tuple[Manifest, ...]
    sitting: tuple[Manifest, ...]
    terminating: frozenset[str]
    probes: tuple[Manifest, ...]


def random_cluster(rng: Random, n_probes: int, *, stateful: float = 0.5, soft: bool = False) -> RandomCluster:
    """Cluster of 3 to 60 nodes with up to four pods on each in the mean.

    stateful : share of the clusters in which pods have volumes
    soft     : probes mostly prefer nodes rather than require them
    """
    names = [f"node-{i}" for i in range(rng.choice((3, 5, 8, 12, 20, 30, 60)))]
    has_volumes = often(rng, stateful)
    # On plain nodes only pods and volumes decide where pods may go: these would drown in all the rest otherwise.
    plain = not soft and often(rng, 0.6 if has_volumes else 0.35)
    nodes = tuple(random_node(rng, name, plain=plain) for name in names)
    others = tuple(random_storage(rng, nodes, namespaces=NAMESPACES)) if has_volumes else ()

    def volumes(rng: Random, namespace: str) -> list[Manifest]:
        return random_volumes(rng, others, namespace, ephemeral=True)

    of_pods = volumes if has_volumes else None
    n_sitting = rng.choice((len(names) // 2, len(names), 2 * len(names), 4 * len(names)))
    places = [rng.choice(names) if often(rng, 0.98) else "gone" for _ in range(n_sitting)]
    sitting = tuple(random_sitting_pod(rng, f"sits-{i}", node, of_pods) for i, node in enumerate(places))
    return RandomCluster(
        namespaces=random_namespaces(rng),
        nodes=nodes,
        others=others,
        sitting=sitting,
        terminating=frozenset(one["metadata"]["name"] for one in sitting if often(rng, 0.1)),
        probes=tuple(random_probe(rng, f"probe-{i}", names, of_pods, plain=plain, soft=soft) for i in range(n_probes)),
    )
