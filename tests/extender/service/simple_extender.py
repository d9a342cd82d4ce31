"""An extender made up for tests of its HTTP service: simple rules about names of nodes, and hooks to fail or wait."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from cluster.degradation import Level
from extender.extender_api import Filtered, VictimsByUid
from kube.binding.binding_steps import BindingRequest
from kube.objects.objects import PodInfo
from scorer.answers import ScorerStatus


class SimpleExtender:
    """Implements ExtenderApi. `fail` is called at the start of every question, to raise or to wait.

    Nodes with "hot" in their name are rejected, with "gpu" rejected for good; "good" has 10 points, "bad" -10.
    deadlines : seconds of pods by name
    asked : (verb, namespace/name of the pod) in the order they came
    """

    def __init__(self) -> None:
        self.fail: Callable[[], None] = lambda: None
        self.ready = True
        self.deadlines: dict[str, float] = {}
        self.asked: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def filter(self, pod: PodInfo, nodes: Sequence[str]) -> Filtered:
        self._ask("filter", pod)
        return Filtered(
            [name for name in nodes if "hot" not in name and "gpu" not in name],
            failed={name: "predicted peak too high" for name in nodes if "hot" in name},
            unresolvable={name: "kept for pods with GPUs" for name in nodes if "gpu" in name},
        )

    def prioritize(self, pod: PodInfo, nodes: Sequence[str], *, due: float = math.inf) -> Mapping[str, int]:
        self._ask("prioritize", pod)
        return {name: 10 if "good" in name else -10 for name in nodes if "good" in name or "bad" in name}

    def preempt(self, pod: PodInfo, victims: Mapping[str, VictimsByUid]) -> Mapping[str, VictimsByUid]:
        self._ask("preempt", pod)
        return {name: of for name, of in victims.items() if "gpu" not in name}

    def prepare(self, pod: PodInfo, nodes: Sequence[str]) -> None:
        pass

    def settle(self) -> None:
        pass

    def deadline_seconds(self, pod: PodInfo) -> float | None:
        return self.deadlines.get(pod.name)

    def status(self) -> ScorerStatus:
        return ScorerStatus(
            ready=self.ready,
            not_ready_because=None if self.ready else "the cluster is being read",
            level=Level.FRESH,
            reasons=(),
            now=datetime(2026, 3, 11, tzinfo=UTC),
            model=None,
            refused_model=None,
            nodes=3,
            pods=7,
            services=2,
            unknown_service_pods=1,
            state_age_seconds=0.5,
            metrics_age_seconds=None,
            measured_nodes=0,
        )

    def _ask(self, verb: str, pod: PodInfo) -> None:
        with self._lock:
            self.asked.append((verb, f"{pod.namespace}/{pod.name}"))
        self.fail()


class SimpleBinder:
    """Implements Binder. `fail` is called before each binding counts as made."""

    def __init__(self) -> None:
        self.fail: Callable[[], None] = lambda: None
        self.bound: list[BindingRequest] = []

    def bind(self, binding: BindingRequest) -> None:
        self.fail()
        self.bound.append(binding)
