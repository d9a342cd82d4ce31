"""Bursts of pods that no CronJob explains: workflow engines and scripts start them at the same time of day, day by day.

    Jobs that no CronJob owns --+
    pods that no Job owns ------+--apply, rebuild--> arrivals by group and minute of the day --> the next day

Pods of Jobs are never counted themselves: their Job is, with the pods that it runs side by side. Nothing is written
down: after a restart it is learned anew from the Jobs and pods that the API server still has. One day of these is
enough where the model saw as many pods start at that time of day.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from base.errors import InputError
from cluster.follower import NodesAndPodsOnly
from cluster.runs.expected import is_job_pod
from cluster.tables.changes import Change, JobChange, PodChange
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from profiles.job.cron.expression import zone_named
from profiles.job.storm.job_demand import ExpectedBurst
from profiles.job.storm.remembered_starts import (
    AROUND,
    BEFORE,
    DAY_MINUTES,
    DAYS,
    Arrival,
    Groups,
    Once,
    expected_arrivals,
    group_named,
    group_of,
    last_days,
)

_MINUTE: Final = 60
_SKEW: Final = 300.0
"""Seconds by which the clock of the API server may be ahead."""

_SEEN_LATE: Final = 5
"""Minutes, the step at which Prometheus is read by default."""

_GROUPS: Final = 1_024
_COUNTED: Final = 65_536
_MOST_BURSTS: Final = 2_000


class PastBursts(NodesAndPodsOnly):
    """Implements cluster.follower.Follower, attached for no kinds; the rest is for any thread.

    Bounded: groups that never had `min_pods` pods are forgotten before others, then those that came on one day only;
    of these the ones that were heard of longest ago.
    """

    def __init__(
        self,
        state: ClusterState,
        run_seconds: Callable[[ServiceKey], float],
        *,
        scheduler_names: Collection[str] = ("job-scheduler",),
        min_pods: int = 10,
        zone: str = "",
        usual_starts: Callable[[Collection[ServiceKey], float, int], Floats] = lambda services, first, n: np.zeros(n),
        clock: Callable[[], float] = time.time,
        groups: int = _GROUPS,
        counted: int = _COUNTED,
    ) -> None:
        """
        run_seconds     : that the pods of a service take
        scheduler_names : of the job profile
        min_pods        : of a group within 5 minutes before or after, fewer are no burst
        zone            : whose time of day counts; '' = UTC
        usual_starts    : pods of services that a model expects to start in the half hour around each of n minutes, of
                          which the first begins at these unix seconds
        clock           : unix seconds
        groups          : how many that had as many pods are remembered
        counted         : of how many pods, and of how many Jobs, is remembered that they have been counted

        Raises InputError.
        """
        if min_pods < 1:
            raise InputError(f"min_pods is {min_pods}: a burst is of at least 1 pod")
        self._state, self._run_seconds, self._names = state, run_seconds, frozenset(scheduler_names)
        self._min_pods, self._zone, self._clock = min_pods, zone_named(zone), clock
        self._usual_starts = usual_starts
        self._lock = threading.Lock()
        self._groups = Groups(min_pods, groups)
        self._pods, self._jobs = Once(counted), Once(counted)
        self._past = 0  # another number whenever something was learned that did not come just now
        self._expected: tuple[tuple[int, int], tuple[ExpectedBurst, ...]] = ((-1, -1), ())
        self.rebuild()

    # What is learned

    def learn_from_jobs(self, jobs: Iterable[JobInfo]) -> None:
        """Learn from Jobs in any state; each counts once, at the moment at which its controller took it up.

        Suspended Jobs count when they are resumed.
        """
        ours = [one for one in jobs if one.scheduler_name in self._names and one.service.kind != "CronJob"]
        new = [one for one in ours if one.uid not in self._jobs and not one.suspended]
        started = [(one.started, one) for one in new if one.started is not None and self._is_recent(one.started)]
        for at, job in sorted(started, key=lambda pair: pair[0]):
            name, priority = group_named(job.namespace, "Job", job.name), job.template.priority or 0
            stays = job.template.stays
            arrival = Arrival(name, job.service, job.pods_at_once, job.requests, priority, job.annotations, stays)
            self._learn(self._jobs, job.uid, at, arrival)

    def apply(self, changes: Sequence[Change]) -> None:
        """Learn from Jobs and new pods. Pods that are seated many at once had been waiting, and were counted then."""
        self.learn_from_jobs(change.job for change in changes if isinstance(change, JobChange))
        for change in changes:
            if isinstance(change, PodChange) and self._counts(change.pod):
                self._learn_pod(change.pod)

    def rebuild(self) -> None:
        """Learn from Jobs and pods whose changes were missed."""
        self.learn_from_jobs(self._state.jobs.values())
        pods = [pod for pod in self._state.pods.values() if self._counts(pod)]
        for pod in sorted(pods, key=lambda one: one.created):
            self._learn_pod(pod)

    # What is asked

    def group_of(self, pod: PodInfo) -> str:
        """Which of the expected bursts a pod may be of; '' = none."""
        return group_of(pod) if pod.scheduler_name in self._names and is_job_pod(pod, self._names) else ""

    def expected(self, now: float) -> tuple[ExpectedBurst, ...]:
        """In the next day, by their start: one for each minute in which pods of a group are expected.

        Found anew when a minute has passed: what comes meanwhile is of bursts that are under way.
        """
        local, (known, expected) = self._local_minute(now), self._expected
        if known == (local, self._past):
            return expected
        known = (local, self._past)
        self._expected = (known, self._find(local))
        return self._expected[1]

    def __len__(self) -> int:
        """Groups of which something is known."""
        return len(self._groups)

    # Inside

    def _find(self, local: int) -> tuple[ExpectedBurst, ...]:
        found: list[tuple[int, int, str]] = []  # local minute, pods, group
        with self._lock:
            self._groups.forget(local // DAY_MINUTES)
            names = self._groups.names()
        for name in names:
            with self._lock:
                group = self._groups.get(name)
                if group is None:
                    continue
                came, seen = last_days(group, local)
                services, n_days = tuple(group.services), len(group.days)
            usual = self._usual(services, local) if n_days == 1 else None
            for first, pods in expected_arrivals(came, seen, self._min_pods, usual):
                minutes = np.flatnonzero(pods)
                ahead = (first + minutes - BEFORE).tolist()
                found += [
                    (local + at, n, name)
                    for at, n in zip(ahead, pods[minutes].tolist(), strict=True)
                    if 0 <= at < DAY_MINUTES
                ]
        found = sorted(found, key=lambda one: -one[1])[:_MOST_BURSTS]
        about = {name: self._about(name) for name in {name for _, _, name in found}}
        return tuple(
            ExpectedBurst(self._unix(minute), name, None, pods, *about[name])
            for minute, pods, name in sorted(found, key=lambda one: (one[0], one[2]))
        )

    def _usual(self, services: Collection[ServiceKey], local: int) -> Bools:
        """(n_minutes,) as `last_days`: whether a model expects enough pods of services in the half hour around."""
        starts = self._usual_starts(services, self._unix(local - BEFORE), DAY_MINUTES + 2 * BEFORE)
        # The trainer sees a pod some minutes after its start, which may be in the next half hour.
        late = np.append(starts[_SEEN_LATE:], np.repeat(starts[-1:], _SEEN_LATE))
        return np.asarray(np.maximum(starts, late) >= self._min_pods)

    def _counts(self, pod: PodInfo) -> bool:
        return pod.scheduler_name in self._names and pod.owner.kind != "Job" and is_job_pod(pod, self._names)

    def _is_recent(self, at: float) -> bool:
        now = self._clock()
        return now - DAYS * 86_400 <= at <= now + _SKEW

    def _learn_pod(self, pod: PodInfo) -> None:
        if pod.uid in self._pods or not self._is_recent(pod.created):
            return
        service = self._state.service_key(pod)
        stays = pod.uses_host or bool(pod.volumes or pod.host_ports)
        arrival = Arrival(group_of(pod), service, 1, pod.requests, pod.priority, pod.annotations, stays)
        self._learn(self._pods, pod.uid, pod.created, arrival)

    def _learn(self, once: Once, uid: str, at: float, arrival: Arrival) -> None:
        with self._lock:
            if arrival.pods > 0 and once.add(uid, at):
                self._groups.add(arrival, self._local_minute(at))
                self._past += at < self._clock() - AROUND * _MINUTE

    def _about(self, name: str) -> tuple[float, Mapping[str, float], int, Mapping[str, str] | None, bool]:
        """Seconds that its pods run, what one of them requests, priority, annotations, whether they stay."""
        with self._lock:
            group = self._groups.get(name)
            if group is None:
                return 0.0, {}, 0, None, False
            services = tuple(group.services)
            about = group.requests(), group.priority, group.annotations, group.stays
        return float(np.median([self._run_seconds(one) for one in services])), *about

    def _local_minute(self, at: float) -> int:
        """Since 1970 by the clock on the wall."""
        wall = datetime.fromtimestamp(int(at), self._zone).replace(tzinfo=UTC)
        return int(wall.timestamp()) // _MINUTE

    def _unix(self, local: int) -> float:
        wall = datetime.fromtimestamp(local * _MINUTE, UTC)
        return wall.replace(tzinfo=self._zone).timestamp()
