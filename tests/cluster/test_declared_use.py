"""What a pod declares in its virtual-request annotation counts in the predicted load that the default score weighs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats
from cluster.predicted.predicted_cluster import _MOST_IDLE_PROFILES
from forecast.resources import CPU, DISK, MEMORY
from kube.objects.objects import PodInfo
from tests.scorer.live_cluster import model, pod_of
from tests.scorer.scorer_at import LiveScorer, tables

USE = "forecast-scheduler.io/virtual-request"


def declaring(name: str, number: int | None = None, on: str = "", **amounts: object) -> PodInfo:
    """A pod with an annotation; number: of its service, None = one that no model knows."""
    return pod_of(number, name, on, cpu=0.1, memory=0.1, annotations={USE: json.dumps(amounts)})


def curve_on(scorer: LiveScorer, row: int) -> Floats:
    """(n_resources, n_slots) base units of a node of 40."""
    return np.asarray(tables(scorer).load.share(np.array([row]))[0] * 40.0, dtype=np.float64)


@pytest.mark.parametrize("number", [None, 0])
def test_pods_that_declare_much_are_spread_by_the_default_score(number: int | None) -> None:
    live = LiveScorer(4.0, sizes=(40.0, 40.0, 40.0, 40.0))
    for i in range(20):
        pod = declaring(f"p{i}", number, cpu=6)
        scored = live.scorer.score(pod)
        best = scored.nodes[int(np.argmax(scored.scores))]
        live.put(replace(pod, node=best))
    per_node = Counter(pod.node for pod in live.scorer.tables._cluster.state.pods.values())
    assert max(per_node.values()) <= 6, per_node


def test_it_follows_the_replicas_of_its_service_and_changes_of_the_annotation() -> None:
    live, fresh = LiveScorer(), LiveScorer()
    live.put(declaring("a", 3, "node-0", cpu=2))
    others = [pod_of(3, f"b{i}", "node-1", cpu=0.1, memory=0.1) for i in range(7)]
    for pod in others:
        live.put(pod)
    live.put(declaring("a", 3, "node-0", cpu=1))
    live.later(1)
    for pod in [*others, declaring("a", 3, "node-0", cpu=1)]:
        fresh.put(pod)
    fresh.later(1)
    np.testing.assert_allclose(curve_on(live, 0), curve_on(fresh, 0), atol=1e-3)
    assert live.scorer.self_check().drift == ()
    live.put(pod_of(3, "a", "node-0", cpu=0.1, memory=0.1))
    live.later(1)
    assert live.scorer.self_check().drift == ()


def test_a_pod_uses_what_it_declares_and_no_less_than_its_service_and_profiles_stay_bounded() -> None:
    live, other = LiveScorer(), LiveScorer()
    before = curve_on(live, 0)
    live.put(declaring("a", on="node-0", cpu=6, disk=2))
    other.put(pod_of(None, "a", "node-0", cpu=0.1, memory=0.1))
    added, by_requests = curve_on(live, 0) - before, curve_on(other, 0) - before
    np.testing.assert_allclose(added[CPU], 6.0, rtol=1e-4)
    np.testing.assert_allclose(added[DISK], 2.0, rtol=1e-4)
    np.testing.assert_allclose(added[MEMORY], by_requests[MEMORY], atol=1e-5)
    live, other = LiveScorer(), LiveScorer()
    before = curve_on(live, 0)
    live.put(declaring("a", 3, "node-0", cpu=2))
    other.put(pod_of(3, "a", "node-0", cpu=0.1, memory=0.1))
    added, measured = curve_on(live, 0) - before, curve_on(other, 0) - before
    assert measured[CPU].min() < 2.0 < measured[CPU].max()
    np.testing.assert_allclose(added[CPU], np.maximum(measured[CPU], 2.0), atol=1e-4)
    np.testing.assert_allclose(added[MEMORY], measured[MEMORY], atol=1e-5)
    live = LiveScorer()
    for i in range(_MOST_IDLE_PROFILES + 50):
        live.scorer.score(declaring("asked", 0 if i % 2 else None, cpu=i + 1))
    assert len(tables(live).keys) <= _MOST_IDLE_PROFILES + len(model().services)
    assert sum(len(keys) for keys in tables(live)._declaring.values()) <= _MOST_IDLE_PROFILES
