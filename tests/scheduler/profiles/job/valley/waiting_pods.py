"""A small live cluster with job pods that wait, for tests of gate, planner and preference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from scheduler.profiles.job.job_annotations import terms_of
from scorer.runs.declared_run import EXPECTED_RUN_ANNOTATION, said_run
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer

PREFIX = "forecast-scheduler.io/"


def job_pod(
    name: str = "job", on: str = "", *, cpu: float = 2.0, run: str = "30m", created: float = 0.0, **said: Any
) -> PodInfo:
    """A pod that no model knows; said: its annotations, with _ for -."""
    annotations: Mapping[str, str] = {
        EXPECTED_RUN_ANNOTATION: run,
        **{PREFIX + key.replace("_", "-"): text for key, text in said.items()},
    }
    return replace(pod_of(None, name, on, cpu=cpu, memory=1.0, annotations=annotations), created=created)


def run_seconds(pod: PodInfo, service: ServiceKey) -> float:
    return said_run(pod.annotations) or 600.0


def due_of(pod: PodInfo) -> float:
    terms = terms_of(pod)
    return min(terms.latest_start, terms.deadline - (said_run(pod.annotations) or 600.0))


def view_of_live(live: LiveScorer) -> ClusterView:
    cluster = live.scorer.tables._cluster
    return ClusterView(cluster, PlacementIndex(cluster.state))


class NotingQueue:
    """Notes whom it would ask the gate about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def happened(self, event: ClusterEvent) -> None:
        assert event.pod is not None
        self.asked.append(event.pod.uid)
