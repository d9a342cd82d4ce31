"""Advice, decisions and pods for tests, with what the test is about said and the rest filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kube.objects.objects import PodInfo, PodPhase, QosClass
from placement.decisions.decision import Advice, Binding, Decision, decision_of
from scorer.answers import Peak
from testing.objects import pod_info

AT = 1_790_000_000.0


PEAK_AT = datetime(2026, 9, 21, 22, tzinfo=UTC)
"""In the evening of the day of AT."""


def expecting(share: float | None) -> Callable[[], Peak | None]:
    """What works out an expected peak of CPU, with an upper bound a fifth higher."""
    if share is None:
        return lambda: None
    return lambda: Peak("cpu", "cores", 10 * share, 12 * share, 10.0, share, PEAK_AT)


def advice(points: Mapping[str, int], nodes: Sequence[str] | None = None, **changes: Any) -> Advice:
    """As the extender would give it: best and runner-up from the points. nodes: those that points name."""
    names = sorted(points) if nodes is None else nodes
    order = sorted(names, key=lambda name: (-points.get(name, 0), name))
    best, runner_up = (order[index] if len(order) > index else None for index in range(2))
    facts: dict[str, Any] = {
        "uid": "uid-1",
        "pod": "shop/cart-1",
        "service": "shop/Deployment/cart",
        "at": AT,
        "n_nodes": len(names),
        "nodes": names,
        "points": points,
        "best": best,
        "runner_up": runner_up,
        "margin": None if best is None or runner_up is None else points.get(best, 0) - points.get(runner_up, 0),
        "peak": expecting(0.61),
        "level": "fresh",
        "reasons": (),
        "model_version": "2026-09-20T02-00",
        "model_age_seconds": 7200.0,
        "metrics_age_seconds": 20.0,
        "seconds": 0.0021,
    }
    return Advice(**(facts | changes))


def binding(given: Advice, node: str, *, at: float = AT + 1, because: str = "") -> Binding:
    return Binding(given, node, at, "1.2.3", because)


def decision(
    points: Mapping[str, int], node: str, *, at: float = AT + 1, because: str = "", **changes: Any
) -> Decision:
    """because: why the pod is not where it was advised to."""
    return decision_of(binding(advice(points, **changes), node, at=at, because=because))


def pod(uid: str = "uid-1", node: str = "n1", *, created: float = AT) -> PodInfo:
    return pod_info("cart-1", uid=uid, node=node, qos=QosClass.BEST_EFFORT, phase=PodPhase.PENDING, created=created)
