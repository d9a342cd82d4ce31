"""A day of CronJobs on the bundled sample: what jobs do to the nodes' peaks, and whether they are on time.

60 CronJobs (job_day_jobs.py: frequent small ones, bursts at full hours, evening batches, nightly reports of which most
say how long they may wait) run beside the sample's services from six in the morning to six. Services sit where they
were recorded, and what the nodes really used without jobs is played back; the model is fitted on the days before. Jobs
are placed minute by minute by the scheduler's own code in memory, with what it would know at that minute:

    no jobs             the services alone
    by requests         by kube-scheduler's filters and scores, at once
    peak-aware          by the predicted peak, jobs counted while they are expected to run and kept off nodes whose peak
                        falls into the run, at once
    with the valley     the same, and jobs that may wait start when the plan says

    hot            node-half-hours with CPU, disk, network or log beyond 80 % of capacity
    hot CPU        the same of CPU alone
    peak           each node's highest half hour of CPU as a share of its capacity: mean, highest, CV over nodes
    cluster peak   highest half hour of the CPU of all nodes together
    on time        pods that say by when they have to start or to end and did so; of these, waited: hours on average
    others wait    seconds until a node, of pods that may not wait: mean

Medians over the seeds, by which CronJobs are drawn. Run as `python -m benchmarks.job_day [--seeds N] [--json FILE]`.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from base.arrays import Floats
from benchmarks.harness import command_line
from benchmarks.job_day_cluster import RecordedDay, recorded_day
from benchmarks.job_day_jobs import SIZE, DrawnRun, drawn_day
from cluster.degradation import Level
from cluster.live.usage import NodeUsage
from cluster.model_watch import LoadedModel
from cluster.predicted.pod_bounds import VIRTUAL_REQUEST_ANNOTATION
from cluster.runs.expected import EXPECTED_RUN_ANNOTATION, said_run
from cluster.state_source import StateSource
from forecast.calendar import SLOTS_PER_DAY
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, MEMORY
from forecast.service_key import Owner, ServiceKey
from kube.decoding.decoding import Kind, decode_pod
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo, PodPhase
from placement.cluster_events import ClusterEvent
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter
from placement.index.index import PlacementIndex
from placement.plugins import NodePreference
from placement.policies.compiling import PolicyDefaults, settings_policy
from profiles.job.job_annotations import DEADLINE_ANNOTATION, LATEST_START_ANNOTATION, terms_of
from profiles.job.job_settings import ValleyOptions
from profiles.job.valley.off_peak import OffPeak
from profiles.job.valley.planning_loop import Planner
from profiles.job.valley.valley_gate import ValleyGate
from scheduler.cycle.placing import UnitPlacer
from scorer.options import ScorerOptions
from scorer.replay.replay_figures import hot_node_slots, shares
from scorer.scorer import Scorer
from testing.constants import with_constants

RULES: Final = ("no jobs", "by requests", "peak-aware", "with the valley")
_MINUTE: Final = 60.0
_HALF_HOUR: Final = 1800.0
_DAY: Final = 86_400.0
_NAMESPACE: Final = "batch"
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class JobDay:
    """Figures of one rule, see the top. Shares but for `waited` (hours) and `others_wait` (seconds).

    pods, unplaced : of jobs; those that had found no node when the day was over
    """

    hot: float
    hot_cpu: float
    peak_mean: float
    peak_highest: float
    peak_cv: float
    cluster_peak: float
    on_time: float
    waited: float
    others_wait: float
    pods: int
    unplaced: int


@dataclass(slots=True)
class _Placed:
    """What became of a pod. Times in seconds of the day; None = it never started."""

    run: DrawnRun
    seconds: float
    row: int = -1
    started: float | None = None


@dataclass(slots=True)
class _Usage:
    """A UsageSource: what the nodes used in the half hour before."""

    nodes: tuple[str, ...]
    used: Floats
    sampled: float

    def read(self) -> NodeUsage:
        return NodeUsage(self.nodes, self.used, np.full(len(self.nodes), self.sampled))

    def node_history(self, *unused: object) -> Floats:
        raise NotImplementedError

    def service_history(self, *unused: object) -> Floats:
        raise NotImplementedError

    def pods(self, *unused: object) -> dict[tuple[str, str], float]:
        raise NotImplementedError


class _Queue:
    """The gate is asked every minute anyway."""

    def happened(self, event: ClusterEvent) -> None:
        """Nothing."""


@dataclass(slots=True)
class _Waiting:
    """Pods of one run that wait still."""

    run: DrawnRun
    pods: list[PodInfo]
    places: dict[str, _Placed] = field(default_factory=dict)


class _Simulation:
    """One rule on one day."""

    def __init__(self, day: RecordedDay, rule: str, jobs: Sequence[DrawnRun]) -> None:
        self.day, self.rule, self.now = day, rule, day.start
        self.load = day.usage.copy()  # (n_nodes, n_resources, n_slots), jobs added as they run
        self.usage = _Usage(day.nodes, day.before, day.start)
        source = StateSource(lambda: (True, self.now, {}))
        self.scorer = Scorer(ScorerOptions(), usage=self.usage, clock=lambda: self.now, source=source)
        for kind, objects in day.objects.items():
            self.scorer.tables.replace(kind, objects)
        self.scorer.tables.replace(Kind.PODS, day.pods[0])
        self.is_aware = rule != "by requests"
        if self.is_aware:
            with self.scorer.tables.changing() as cluster:
                cluster.run_of = self._run_of
            self.scorer.tables.install(LoadedModel("day", day.model, {}))
        with self.scorer.tables.reading() as cluster:
            self.view = ClusterView(cluster, PlacementIndex(cluster.state))
            cluster.listeners.append(self.view.index.apply)
        self.node_of_row = {row: day.nodes.index(name) for name, row in self.view.state.row_of.items()}
        options = with_constants(ValleyOptions(), enabled=rule == "with the valley", every=300.0)
        self.off_peak = OffPeak(HOT_SHARE, options, _due_of, self._run_of)
        self.gate = ValleyGate(options, _due_of, clock=lambda: self.now)
        self.planner = Planner(
            self.scorer.tables, _Queue(), self.gate, lambda pod, service: _said(pod), options, clock=lambda: self.now
        )
        self.policy = settings_policy(PolicyDefaults())
        standard: tuple[Filter, ...] = (*standard_filters(), *self.policy.filters)
        self.filters = (*standard, self.off_peak) if self.is_aware else standard
        self.preferences: tuple[NodePreference, ...] = (self.off_peak,) if self.is_aware else ()
        self.to_come = list(jobs)
        self.waiting: list[_Waiting] = []
        self.running: list[tuple[float, str, PodInfo]] = []  # a heap by end
        self.placed: list[_Placed] = []

    def play(self) -> None:
        """The whole day."""
        for minute in range(int(_DAY / _MINUTE)):
            self.now = self.day.start + _MINUTE * minute
            self._end_runs()
            if minute % 30 == 0:
                self._half_hour(minute // 30)
            self.scorer.tables.tick()
            self._create(_MINUTE * minute)
            if self.gate.held() or self.gate.has_new:
                self.planner.keep_up()
            self._place()

    def _half_hour(self, slot: int) -> None:
        """Services come and go as recorded; the nodes are measured."""
        here = {pod.uid: pod for pod in self.day.pods[slot]}
        with self.scorer.tables.reading() as cluster:
            known = [pod for pod in cluster.state.pods.values() if pod.namespace != _NAMESPACE]
        for pod in known:
            if pod.uid not in here:
                self.scorer.tables.delete(Kind.PODS, pod)
        for uid in sorted(set(here).difference(pod.uid for pod in known)):
            self.scorer.tables.put(Kind.PODS, here[uid])
        self.scorer.tables.tick()
        self.scorer.tables.rebuild_if_needed()
        self.usage.used = self.load[:, :, slot - 1] if slot else self.day.before
        self.usage.sampled = self.now
        self.scorer.tables.measure()

    def _create(self, seconds: float) -> None:
        while self.to_come and self.to_come[0].created <= seconds:
            run = self.to_come.pop(0)
            job, pods = _objects(run, self.day.start)
            self.scorer.tables.put(Kind.JOBS, job)
            waiting = _Waiting(run, pods)
            for pod, long in zip(pods, run.runs, strict=True):
                self.scorer.tables.put(Kind.PODS, pod)
                self.gate.pre_enqueue(pod)
                waiting.places[pod.uid] = _Placed(run, long)
            self.placed += waiting.places.values()
            self.waiting.append(waiting)

    def _place(self) -> None:
        """Everything that may start: those with a deadline first, then by age."""
        self.waiting.sort(key=lambda one: (_due_of(one.pods[0]), one.run.created))
        for waiting in self.waiting:
            ready = [pod for pod in waiting.pods if self.gate.pre_enqueue(pod).is_success]
            if ready:
                self._place_some(waiting, ready)
        self.waiting = [waiting for waiting in self.waiting if waiting.pods]

    def _place_some(self, waiting: _Waiting, ready: list[PodInfo]) -> None:
        with self.scorer.tables.changing() as cluster:
            level = self.scorer.tables.level()[0] if self.is_aware else Level.NEUTRAL
            placer = UnitPlacer(self.view, cluster, level, np.inf, preferences=self.preferences)
            rows = placer.place(ready, self.filters, self.policy).rows
        seconds = self.now - self.day.start
        for pod, row in zip(ready, rows, strict=False):
            name = self.view.state.names[row]
            bound = replace(pod, node=name, started=self.now, phase=PodPhase.RUNNING)
            self.scorer.tables.put(Kind.PODS, bound)
            place = waiting.places[pod.uid]
            place.row, place.started = self.node_of_row[row], seconds
            self._add(place)
            heapq.heappush(self.running, (seconds + place.seconds, pod.uid, bound))
        gone = {pod.uid for pod in ready[: len(rows)]}
        waiting.pods = [pod for pod in waiting.pods if pod.uid not in gone]

    def _end_runs(self) -> None:
        while self.running and self.running[0][0] <= self.now - self.day.start:
            self.scorer.tables.delete(Kind.PODS, heapq.heappop(self.running)[2])

    def _add(self, place: _Placed) -> None:
        """Its use to what the nodes use, by how much of each half hour it runs."""
        assert place.started is not None
        begins = _HALF_HOUR * np.arange(SLOTS_PER_DAY)
        overlap = np.minimum(place.started + place.seconds, begins + _HALF_HOUR) - np.maximum(place.started, begins)
        part = np.clip(overlap / _HALF_HOUR, 0.0, 1.0)
        self.load[place.row, CPU] += place.run.cores * part
        self.load[place.row, MEMORY] += place.run.memory * part

    def _run_of(self, pod: PodInfo, service: ServiceKey) -> float | None:
        return _said(pod) if pod.namespace == _NAMESPACE else None


def job_day(day: RecordedDay, seed: int, rules: Sequence[str] = RULES, size: float = SIZE) -> dict[str, JobDay]:
    """Every rule with the same CronJobs."""
    jobs = drawn_day(seed, size)
    found = {}
    for rule in rules:
        if rule == "no jobs":
            found[rule] = figures_of(day, day.usage, ())
            continue
        simulation = _Simulation(day, rule, jobs)
        simulation.play()
        found[rule] = figures_of(day, simulation.load, simulation.placed)
    return found


def figures_of(day: RecordedDay, load: Floats, placed: Sequence[_Placed]) -> JobDay:
    """load: (n_nodes, n_resources, n_slots) base units, jobs included."""
    share = shares(load, day.capacity)
    peaks = share[:, CPU].max(axis=1)
    timed = [one for one in placed if one.run.is_timed]
    others = [one for one in placed if not one.run.is_timed]
    return JobDay(
        hot=float(hot_node_slots(share, HOT_SHARE).mean()),
        hot_cpu=float((share[:, CPU] > HOT_SHARE).mean()),
        peak_mean=float(peaks.mean()),
        peak_highest=float(peaks.max()),
        peak_cv=float(peaks.std() / peaks.mean()),
        cluster_peak=float((load[:, CPU].sum(axis=0) / day.capacity[:, CPU].sum()).max()),
        on_time=float(np.mean([_is_on_time(one) for one in timed])) if timed else 1.0,
        waited=_mean_wait(timed) / 3600,
        others_wait=_mean_wait(others),
        pods=len(placed),
        unplaced=sum(one.started is None for one in placed),
    )


def _mean_wait(placed: Sequence[_Placed]) -> float:
    waits = [one.started - one.run.created for one in placed if one.started is not None]
    return float(np.mean(waits)) if waits else 0.0


def _is_on_time(one: _Placed) -> bool:
    if one.started is None:
        return False
    latest, deadline = one.run.latest_start, one.run.deadline
    starts = latest is None or one.started <= one.run.created + latest
    return starts and (deadline is None or one.started + one.seconds <= deadline)


def _said(pod: PodInfo) -> float:
    return said_run(pod.annotations) or 600.0


def _due_of(pod: PodInfo) -> float:
    terms = terms_of(pod)
    return min(terms.latest_start, terms.deadline - _said(pod))


def _objects(run: DrawnRun, start: float) -> tuple[JobInfo, list[PodInfo]]:
    name = f"{run.cron_job}-{29_000_000 + run.number}"
    said = {
        EXPECTED_RUN_ANNOTATION: f"{run.declared_run:.0f}",
        VIRTUAL_REQUEST_ANNOTATION: json.dumps({"cpu": f"{run.cores:.4f}", "memory": f"{run.memory:.0f}"}),
    }
    if run.latest_start is not None:
        said[LATEST_START_ANNOTATION] = f"{run.latest_start:.0f}"
    if run.deadline is not None:
        said[DEADLINE_ANNOTATION] = datetime.fromtimestamp(start + run.deadline, UTC).strftime(_TIME)
    template = decode_pod(
        {
            "metadata": {"name": name, "namespace": _NAMESPACE, "uid": name},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "resources": {
                            "requests": {"cpu": f"{run.request_cores * 1000:.0f}m", "memory": f"{run.memory:.0f}"}
                        },
                    }
                ]
            },
        }
    )
    template = replace(
        template, annotations=said, owner=Owner("Job", name), owner_uid=name, created=start + run.created
    )
    pods = [replace(template, uid=f"{name}-{n}", name=f"{name}-{n}") for n in range(len(run.runs))]
    return JobInfo(_NAMESPACE, name, name, ServiceKey(_NAMESPACE, "CronJob", run.cron_job)), pods


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table of medians over the seeds."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", type=float, default=SIZE, help="of the jobs' pods, see job_day_jobs.py")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(arguments)
    began = time.perf_counter()
    day = recorded_day()
    runs = [job_day(day, seed, size=args.size) for seed in range(args.seeds)]
    print(
        f"{'':16}{'hot':>7}{'hot CPU':>9}{'peak':>7}{'highest':>9}{'CV':>7}{'cluster peak':>14}"
        f"{'on time':>9}{'waited':>8}{'others wait':>13}{'pods':>7}{'unplaced':>10}"
    )
    for rule in RULES:
        m = {name: median(asdict(run[rule])[name] for run in runs) for name in asdict(runs[0][rule])}
        print(
            f"{rule:16}{m['hot']:7.1%}{m['hot_cpu']:9.1%}{m['peak_mean']:7.1%}{m['peak_highest']:9.0%}"
            f"{m['peak_cv']:7.3f}{m['cluster_peak']:14.1%}{m['on_time']:9.1%}{m['waited']:7.1f}h"
            f"{m['others_wait']:12.0f}s{m['pods']:7.0f}{m['unplaced']:10.0f}"
        )
    print(f"{args.seeds} seeds, {time.perf_counter() - began:.0f} s")
    if args.json:
        args.json.write_text(json.dumps([{rule: asdict(of) for rule, of in run.items()} for run in runs], indent=2))


if __name__ == "__main__":
    main()
