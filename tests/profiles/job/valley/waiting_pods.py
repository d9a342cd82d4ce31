"""Gate, planner and a real queue over a live cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cluster.runs.expected import EXPECTED_RUN_ANNOTATION, said_run
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from placement.pod_groups.group_of_pod import group_of
from profiles.job.job_annotations import terms_of
from profiles.job.job_metrics import ValleyMetrics
from profiles.job.job_settings import ValleyOptions
from profiles.job.valley.planning_loop import Planner
from profiles.job.valley.valley_gate import ValleyGate
from scheduler.loop_settings import QueueOptions
from scheduler.queue.active import PrioritySort
from scheduler.queue.queued_pods import UnitOf, unit_by_owner
from scheduler.queue.scheduling_queue import SchedulingQueue
from testing.constants import with_constants
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


EVENING = [pod_of(n % 6, f"online-{n}", f"node-{n % 4}") for n in range(48)]


class _Units:
    """Gangs by their label, whether or not there is a PodGroup."""

    def unit_of(self, pod: PodInfo) -> UnitOf:
        group = group_of(pod)
        return unit_by_owner(pod) if group is None else UnitOf(group, None, True)


class Waiting:
    """At some hour of the model's first day."""

    def __init__(
        self,
        hour: float = 19.0,
        *,
        without_model: bool = False,
        metrics: ValleyMetrics | None = None,
        **options: float | bool,
    ) -> None:
        self.live = LiveScorer(hour, pods=EVENING, without_model=without_model)
        settings = with_constants(ValleyOptions(), **options)
        self.gate = ValleyGate(settings, due_of, clock=self.live.clock)
        self.queue = SchedulingQueue(
            sort=PrioritySort(),
            gate=self.gate.pre_enqueue,
            hints=lambda pod: {},
            units=_Units(),
            options=QueueOptions(),
            clock=self.live.clock,
        )
        self.planner = Planner(
            self.live.scorer.tables,
            self.queue,
            self.gate,
            run_seconds,
            settings,
            metrics=metrics,
            clock=self.live.clock,
        )

    def put(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.live.put(pod)
            self.queue.put(pod)

    def later(self, seconds: float) -> None:
        self.live.later(seconds)
        self.queue.tick()

    def popped(self) -> list[str]:
        found: list[str] = []
        while (popped := self.queue.pop(most=100, wait_seconds=0.0)) is not None:
            found += [queued.pod.uid for queued in popped.pods]
        return [uid.removeprefix("uid-") for uid in found]

    def gated(self) -> int:
        return self.queue.lengths()["gated"]
