"""What kube-scheduler's other scores protect in a rollout: replicas apart in zones and on nodes, and images at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from forecast.service_key import ServiceKey
from testing.servers.cluster_objects import Manifest

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
N_ZONES: Final = 3
_IMAGE_BYTES: Final = 600 * 2**20
_NODES_WITH_IMAGE: Final = 1 / 3


@dataclass(frozen=True, slots=True)
class Protected:
    """
    zone_skew  : pods that the fullest zone of a service has more than its emptiest one, mean over services
    beside_own : share of pods that share a node with an earlier one of their service
    with_image : share of pods whose node had their image
    """

    zone_skew: float
    beside_own: float
    with_image: float


def zone_of(row: int) -> str:
    """Nodes of each size are dealt to the zones in turn."""
    return f"zone-{row % N_ZONES}"


def image_of(service: ServiceKey) -> str:
    """The one image of a service."""
    return f"registry.example/{service.namespace}/{service.name}:1"


def images_on_nodes(n_services: int, n_nodes: int, rng: np.random.Generator) -> Bools:
    """(n_services, n_nodes) which node has which image: a third of the nodes each, where the pods sat before."""
    first = round(_NODES_WITH_IMAGE * n_nodes)
    return np.array([rng.permutation(n_nodes) < first for _ in range(n_services)])


def image_entries(services: tuple[ServiceKey, ...], has: Bools) -> list[Manifest]:
    """status.images of a node. has: (n_services,)"""
    return [
        {"names": [image_of(service)], "sizeBytes": _IMAGE_BYTES}
        for service, is_there in zip(services, has.tolist(), strict=True)
        if is_there
    ]


def protected(placement: Ints, services: Ints, images: Bools) -> Protected:
    """What is left of it.

    placement, services : (n_pods,) node and service of each pod
    images              : (n_services, n_nodes)
    """
    n_services, n_nodes = images.shape
    pods = np.zeros((n_services, n_nodes), dtype=np.int64)
    np.add.at(pods, (services, placement), 1)
    by_zone = np.stack([pods[:, zone::N_ZONES].sum(axis=1) for zone in range(N_ZONES)])  # (n_zones, n_services)
    return Protected(
        zone_skew=float(np.ptp(by_zone, axis=0).mean()),
        beside_own=float(np.maximum(pods - 1, 0).sum() / len(placement)),
        with_image=float(images[services, placement].mean()),
    )
