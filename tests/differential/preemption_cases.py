"""Random full clusters, each with a pod that can only come in at the expense of others; many in one real cluster.

The nodes of a case carry its label, and its preemptor selects them, so kube-scheduler decides the cases independently
of each other. Start times differ within a case: who is more important is never left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from testing.servers.cluster_objects import Manifest, node, pod, running

_PRIORITIES: Final = {"low": -10, "middle": 0, "high": 1000, "preempting": 5000}

CLASSES: Final[tuple[Manifest, ...]] = tuple(
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    for name, value in _PRIORITIES.items()
)

_MILLI_CORES: Final = (250, 500, 500, 1000, 1500)
_APPS: Final = ("a", "b", "c")
_HOST = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Case:
    """Manifests. The preemptor is named like the case."""

    name: str
    nodes: tuple[Manifest, ...]
    sitting: tuple[Manifest, ...]
    budgets: tuple[Manifest, ...]
    preemptor: Manifest


def random_case(rng: Random, name: str) -> Case:
    """Three to six nodes of four cores, with no quarter of a core or no pod to spare."""
    nodes = tuple(
        node(f"{name}-n{i}", cpu="4", reserved_cpu="0m", pods=rng.choice((5, 8, 110)), labels={"case": name})
        for i in range(rng.randint(3, 6))
    )
    seconds = rng.sample(range(3600), 200)
    # Mostly of two priorities: then the number of victims and their start decide.
    priorities = rng.choice((("low", "middle", "high"), ("middle", "high"), ("low",), ("middle", "high", "preempting")))
    sitting: list[Manifest] = []
    for one in nodes:
        left, most = 4000, int(one["status"]["allocatable"]["pods"])
        n_here, has_port = 0, rng.randrange(8)  # one at most: upstream's set of ports forgets a second one
        while left >= min(_MILLI_CORES) and n_here < most:
            cpu = rng.choice([some for some in _MILLI_CORES if some <= left])
            left, n_here = left - cpu, n_here + 1
            made = _sitting(rng, f"{name}-p{len(sitting)}", one, cpu, rng.choice(priorities), seconds.pop())
            if n_here == has_port:
                made["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
            sitting.append(made)
    return Case(name, nodes, tuple(sitting), _budgets(rng, name), _preemptor(rng, name))


def _sitting(rng: Random, name: str, on: Manifest, cpu: int, priority: str, second: int) -> Manifest:
    started = f"2026-01-01T{second // 3600:02}:{second % 3600 // 60:02}:{second % 60:02}Z"
    labels = {"app": rng.choice(_APPS), "case": on["metadata"]["labels"]["case"]}
    made = pod(name, node=on["metadata"]["name"], cpu=f"{cpu}m", memory="0", labels=labels, status=running(started))
    made["spec"]["priorityClassName"] = priority
    return made


def _budgets(rng: Random, name: str) -> tuple[Manifest, ...]:
    chosen = [app for app in _APPS if rng.random() < 0.4]
    return tuple(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"{name}-{app}", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"case": name, "app": app}}},
            "status": {
                "disruptionsAllowed": rng.choice((0, 0, 1, 2)),
                "currentHealthy": 0,
                "desiredHealthy": 0,
                "expectedPods": 0,
                "observedGeneration": 1,
            },
        }
        for app in chosen
    )


def _preemptor(rng: Random, name: str) -> Manifest:
    made = pod(name, cpu=f"{rng.choice((500, 1000, 2000, 3000, 3900))}m", memory="0", labels={"app": "x", "case": name})
    spec: dict[str, Any] = made["spec"]
    spec |= {"priorityClassName": "preempting", "nodeSelector": {"case": name}}
    if rng.random() < 0.25:
        spec["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
    if rng.random() < 0.2:
        selected = {"matchLabels": {"app": rng.choice(_APPS), "case": name}}
        term = {"topologyKey": _HOST, "labelSelector": selected}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made
