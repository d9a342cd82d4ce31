"""Random nodes: labels, taints of all effects, capacities from far too small to ample, images."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from testing.servers.cluster_objects import Manifest, node
from tests.placement.random_labels import often, some_of

CARD: Final = "example.com/card"
HUGE_PAGES: Final = "hugepages-2Mi"
RESTART_ALL: Final = "RestartAllContainersOnContainerExits"

NODE_LABELS: Final = {
    "topology.kubernetes.io/zone": ("east", "west", "north"),
    "disk": ("ssd", "hdd", ""),
    "arch": ("amd64", "arm64"),
    # For Gt and Lt: whole numbers, and what looks like one.
    "rack": ("1", "2", "3", "10", "007", "many", "9223372036854775808", "1.5"),
}

TAINTS: Final = {"dedicated": ("db", "batch", ""), "gpu": ("present",), "maintenance": ("tonight", "3")}

IMAGES: Final = (
    (("registry.example/app:1", "registry.example/app@sha256:" + "a" * 64), 30_000_000),
    (("registry.example/app:2",), 900_000_000),
    (("registry.example/base:latest", "registry.example/old-base:9"), 3_000_000_000),
    (("registry.example:5000/tools:latest",), 600_000_000),
)
"""Names and bytes."""

FEATURES: Final = ("GuaranteedQoSPodCPUResize", RESTART_ALL)
"""In the order in which the API server wants them."""

_CPU: Final = ("500m", "1", "2", "4", "8", "0.75")
_MEMORY: Final = ("512Mi", "1Gi", "2G", "8Gi", "3e9")


def random_node(rng: Random, name: str, *, plain: bool = False) -> Manifest:
    """A node, mostly without taints. plain: large, and open to every pod."""
    labels = {key: rng.choice(values) for key, values in NODE_LABELS.items() if often(rng, 0.9)}
    features = [one for one in FEATURES if often(rng, 0.7)]
    images = [{"names": list(names), "sizeBytes": size} for names, size in IMAGES if often(rng, 0.4)]
    if plain:
        made = node(name, labels=labels, extended={CARD: "8"})
        made["status"] |= {"images": images, "declaredFeatures": features}
        return made
    extended: dict[str, str] = {}
    if often(rng, 0.4):
        extended[CARD] = str(rng.choice((0, 1, 2, 8)))
    if often(rng, 0.4):
        extended[HUGE_PAGES] = rng.choice(("2Mi", "64Mi", "1Gi"))
    made = node(
        name,
        cpu=rng.choice(("2", "4", "8", "16")),
        memory=rng.choice(("4Gi", "8G", "16Gi")),
        pods=rng.choice((2, 4, 6, 110, 110, 110)),
        labels=labels,
        taints=_taints(rng) if often(rng, 0.2) else (),
        extended=extended,
    )
    made["status"] |= {"images": images, "declaredFeatures": features}
    if often(rng, 0.15):
        made["status"]["allocatable"] |= {"cpu": rng.choice(_CPU), "memory": rng.choice(_MEMORY)}
    if often(rng, 0.05):
        made["status"]["allocatable"].pop(rng.choice(("cpu", "memory", "ephemeral-storage", "pods")))
    if often(rng, 0.03):
        del made["status"]["capacity"], made["status"]["allocatable"]
    if often(rng, 0.05):
        made["spec"]["unschedulable"] = True
    what = rng.random()
    if what < 0.06:
        del made["metadata"]["labels"]["kubernetes.io/hostname"]
    elif what < 0.1:
        made["metadata"]["labels"]["kubernetes.io/hostname"] = "shared"
    return made


def _taints(rng: Random) -> list[dict[str, str]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        key, effect = rng.choice(list(TAINTS)), rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        taint = {"key": key, "effect": effect}
        value = some_of(rng, TAINTS[key], most=1)[0]
        found[key, effect] = taint | ({"value": value} if value else {})
    return list(found.values())
