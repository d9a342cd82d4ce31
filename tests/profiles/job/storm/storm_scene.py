"""A small cluster minutes before a full hour, at which CronJobs start many pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from forecast.service_key import Owner
from kube.decoding.job_specs import PodTemplate
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, rejected
from placement.index.index import PlacementIndex
from profiles.job.cron.cron_jobs import CronJobInfo
from profiles.job.job_settings import StormOptions
from profiles.job.storm.storm_watch import StormWatch
from testing.constants import with_constants
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer

HOUR = 17
PODS = 60


def cron_job(
    name: str = "report",
    *,
    pods: int = PODS,
    cpu: float = 0.5,
    schedule: str = "0 * * * *",
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> CronJobInfo:
    """At every full hour."""
    template = PodTemplate(
        requests={"cpu": cpu, "memory": 0.5}, scheduler_name="job-scheduler", annotations=annotations or {}
    )
    return CronJobInfo(
        "shop", name, f"uid-{name}", schedule, parallelism=pods, completions=pods, template=template, **more
    )


class Scene:
    """node-0 to node-3 of 40 cores each, minutes before 17:00."""

    def __init__(self, *jobs: CronJobInfo, minutes: float = -10.0, live: LiveScorer | None = None, **more: Any) -> None:
        self.live = live or LiveScorer(HOUR + minutes / 60, without_model=True)
        self.jobs = list(jobs)
        self.told = 0
        options = with_constants(
            StormOptions(),
            **{"threshold": 50, "lead": 300.0, "grace": 120.0, "most_room": 1.0, **more.pop("options", {})},
        )
        runs = more.pop("run_seconds", lambda service: 90.0)
        self.watch = StormWatch(
            self.live.scorer.tables, lambda: self.jobs, runs, options, clock=self.live.clock, **more
        )
        self.watch.listeners.append(self.hear)
        self.cluster = self.live.scorer.tables._cluster
        self.index = PlacementIndex(self.cluster.state)
        self.cluster.listeners.append(self.index.apply)
        self.watch.keep_up()

    def hear(self) -> None:
        self.told += 1

    def at(self, minutes: float) -> None:
        self.live.at(HOUR + minutes / 60)
        self.watch.keep_up()

    @property
    def kept(self) -> int:
        return sum(held.pods for held in self.watch.headroom.held)

    def passes(self, pod: PodInfo) -> set[str]:
        view = ClusterView(self.cluster, self.index)
        out = rejected(self.watch.filter.filter(pod, view), view.n_rows)
        return {name for name, row in self.cluster.state.row_of.items() if not out[row]}

    def come(self, n: int, on: str, *, first: int = 0, job: str = "report") -> None:
        """Pods of the storm are given a node."""
        self.seat([of_storm(f"storm-{job}-{first + i}", self.live.clock.now, job) for i in range(n)], on)

    def seat(self, pods: list[PodInfo], on: str) -> None:
        for pod in pods:
            self.live.put(pod)
        with self.live.scorer.tables.changing() as cluster:
            cluster.assume_all(pods, [cluster.state.row_of[on]] * len(pods), self.live.clock.now + 600)


def of_storm(name: str, created: float, job: str = "report") -> PodInfo:
    made = replace(pod_of(None, name, cpu=0.5, memory=0.5), created=created, owner_uid=f"job-{job}")
    return replace(made, owner=Owner("Job", f"{job}-29650260"), scheduler_name="job-scheduler")


def other(cpu: float = 0.5, **more: Any) -> PodInfo:
    return replace(pod_of(None, "other", cpu=cpu, memory=0.5), **more)


EVERYWHERE = {f"node-{i}" for i in range(4)}
