"""The loop of `forecast-scheduler schedule` in this process, on a made-up cluster, with an API server that answers at
once: everything runs that runs in the command but the watch and the network."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self, cast

from kubernetes.client import ApiClient, Configuration

from cluster.model_watch import LoadedModel
from cluster.state_source import StateSource
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import schedule_policy
from kube.client.api_answer import ApiAnswer
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.filters.catalogue import standard_filters
from placement.filters.filter import Filter
from placement.policies.policy import OnePolicyForAll, Policy
from profiles.schedule_tables import schedule_tables
from scheduler.assembly import own_role
from scheduler.loop import ScheduleLoop
from scheduler.pod_reports import Reports
from scheduler.process import Process
from scheduler.scheduling_metrics import SchedulingMetrics
from scheduler.shard_tables import ShardLeases
from scorer.options import ScorerOptions
from scorer.scorer import Scorer
from testing.clusters.large_cluster import LargeCluster, large_cluster
from testing.constants import with_constants

_NAME: Final = "forecast-scheduler"
_ZONES: Final = 3
_NOW: Final = time.time()
_LONGEST_SECONDS: Final = 120.0


class AnsweringSession(ApiSession):
    """Carries everything out at once, and sends nothing."""

    def __init__(self) -> None:
        super().__init__(ApiClient(Configuration(host="http://127.0.0.1:9")))

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        content_type: str = "application/json",
        seconds: float,
    ) -> ApiAnswer:
        """Success."""
        return ApiAnswer(201 if method == "POST" else 200, b"{}")


class _NotingReports(Reports):
    """Also notes where pods went, and when all that are awaited have got there.

    last : wall clock and CPU seconds when the last of them did
    """

    def __init__(self, session: ApiSession, on_bound: Callable[[PodInfo, str], None]) -> None:
        super().__init__(session, instance="benchmark")
        self._on_bound = on_bound
        self.nodes: dict[str, str] = {}
        self.all_bound = threading.Event()
        self.last = 0.0, 0.0
        self._awaited = 0

    def await_pods(self, n: int) -> None:
        """Begin to count."""
        self.nodes = {}
        self._awaited = n
        self.all_bound.clear()

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """It is bound."""
        super().scheduled(pod, node)
        self._on_bound(pod, node)
        self.nodes[pod.uid] = node
        self.last = time.perf_counter(), time.process_time()
        if len(self.nodes) == self._awaited:
            self.all_bound.set()


@dataclass(frozen=True, slots=True)
class Round:
    """A batch of pods, from the first pop (or put) to the last outcome.

    seconds : by the wall clock
    cpu     : seconds of the whole process; threads: of each, by name
    nodes   : by UID
    """

    n_pods: int
    seconds: float
    cpu: float
    threads: Mapping[str, float]
    nodes: Mapping[str, str]

    @property
    def rate(self) -> float:
        """Pods/s by the wall clock."""
        return self.n_pods / self.seconds

    @property
    def cpu_rate(self) -> float:
        """Pods per second of CPU."""
        return self.n_pods / self.cpu


class AnsweredLoop:
    """Context manager.

    options  : settings and constants of `schedule`, such as {"batch": 1}
    held     : says which nodes are its own; None = all are
    on_bound : called with pods that are bound, and their nodes
    """

    def __init__(
        self,
        made: LargeCluster,
        options: Mapping[str, Any] | None = None,
        *,
        held: ShardLeases | None = None,
        on_bound: Callable[[PodInfo, str], None] = lambda pod, node: None,
    ) -> None:
        quiet = {"domain": "", "scheduler_name": _NAME, "leader_election": {"enabled": False}}
        settings = Settings()
        settings = settings.replace(schedule=with_constants(settings.schedule, **(quiet | dict(options or {}))))
        self.scorer = still_scorer()
        self.tables = schedule_tables(self.scorer, settings.schedule, settings.node_rules, None, held)
        self.policy: Policy = schedule_policy(settings)
        self.session = AnsweringSession()
        self._reports = _NotingReports(self.session, on_bound)
        self._may_run = False
        self._began: tuple[float, float, dict[str, float]] = (0.0, 0.0, {})
        self._has_begun, self._has_paused = threading.Event(), threading.Event()
        process = Process(
            api=cast(ApiClient, None),
            session=self.session,
            lease=None,
            leads=self._may_write,
            may_write=self._may_write,
            waits_for=lambda: "",
            instance="benchmark",
            is_dry_run=False,
        )
        self._loop = ScheduleLoop(
            process,
            self.scorer,
            self.tables,
            settings.schedule,
            OnePolicyForAll(self.policy),
            own_role(settings.schedule, self.tables, self.session, self._reports),
            SchedulingMetrics(),
        )
        self.filters: tuple[Filter, ...] = (*standard_filters(), *self.policy.filters)
        fill(self.scorer, made)
        self.tables.common.keep_up()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for job in (self.session, self._reports, self._loop):
                job.start()
                stack.callback(job.stop)
            self._stack = stack.pop_all()
        gc.collect()
        gc.freeze()  # as the process does when it has a model
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        gc.unfreeze()

    def schedule(self, pods: Sequence[PodInfo], *, is_fed: bool = False, quiet_seconds: float = 0.0) -> Round:
        """Place and bind pods, which are in the queue before the loop goes on. Raises TimeoutError.

        is_fed        : they come while it runs, through the tables as from the watch
        quiet_seconds : when none was bound for so long those that are left fit nowhere, and the round, without them,
                        has ended with the last that was bound (but for `threads`); 0 = all fit
        """
        # Its last round may wait for pods still, and would take these.
        if not self._has_paused.wait(_LONGEST_SECONDS):
            raise TimeoutError("the loop did not pause")
        self._reports.await_pods(len(pods))
        self._has_begun.clear()
        if not is_fed:
            self._put(pods)
        self._may_run = True
        if not self._has_begun.wait(_LONGEST_SECONDS):
            raise TimeoutError("the loop did not begin")
        if is_fed:
            self._note_beginning()
            self._put(pods)
        if not (self._is_quiet(quiet_seconds) if quiet_seconds else self._reports.all_bound.wait(_LONGEST_SECONDS)):
            n_bound, lengths = len(self._reports.nodes), self._loop.queue.lengths()
            raise TimeoutError(f"{n_bound} of {len(pods)} pods were bound in {_LONGEST_SECONDS:.0f} s: {lengths}")
        (ended, cpu), threads = self._reports.last, _thread_seconds()
        self._may_run = False
        self._has_paused.clear()
        began, cpu_before, before = self._began
        return Round(
            len(self._reports.nodes),
            ended - began,
            cpu - cpu_before,
            {name: seconds - before.get(name, 0.0) for name, seconds in threads.items()},
            dict(self._reports.nodes),
        )

    def _is_quiet(self, seconds: float) -> bool:
        """Waits until all are bound, or some are and no further one was for so long; False = none was."""
        n_before = -1
        while not self._reports.all_bound.wait(seconds):
            if len(self._reports.nodes) == n_before:
                return n_before > 0
            n_before = len(self._reports.nodes)
        return True

    def remove(self, pods: Sequence[PodInfo]) -> None:
        """They are gone."""
        while self._loop.bindings.unfinished:
            time.sleep(0.001)
        for pod in pods:
            self.scorer.tables.delete(Kind.PODS, pod)

    def _put(self, pods: Sequence[PodInfo]) -> None:
        for pod in pods:
            self.scorer.tables.put(Kind.PODS, pod)

    def _may_write(self) -> bool:
        """Asked by the loop before every unit."""
        if not self._may_run:
            self._has_paused.set()
            return False
        if not self._has_begun.is_set():
            self._note_beginning()
            self._has_begun.set()
        return True

    def _note_beginning(self) -> None:
        self._began = time.perf_counter(), time.process_time(), _thread_seconds()


def still_scorer() -> Scorer:
    """Without a cluster yet. Its clock stands: two loops that are compared must not see different half hours."""
    return Scorer(ScorerOptions(), clock=lambda: _NOW, source=StateSource(lambda: (True, _NOW, {})))


def fill(scorer: Scorer, made: LargeCluster) -> None:
    """The whole cluster and its model."""
    scorer.tables.replace(Kind.NODES, made.nodes)
    scorer.tables.replace(Kind.PODS, made.pods)
    scorer.tables.install(LoadedModel(version="benchmark", model=made.model, backtest={}))


def cluster_with_zones(n_nodes: int, per_node: float, n_services: int, **rest: int) -> LargeCluster:
    """testing/clusters/large_cluster.py with three zones. rest: further arguments of it."""
    today = datetime.now(UTC).date()
    made = large_cluster(n_nodes, int(per_node * n_nodes), n_services, first_day=today, **rest)
    nodes = [
        replace(
            node,
            labels={
                "kubernetes.io/hostname": node.name,
                "topology.kubernetes.io/zone": f"zone-{number % _ZONES}",
            },
        )
        for number, node in enumerate(made.nodes)
    ]
    return replace(made, nodes=nodes)


def waiting_pods(made: LargeCluster, n_pods: int, n_services: int, name: str) -> list[PodInfo]:
    """Pods of one ReplicaSet of each service, the pods of a service one after the other."""
    each = -(-n_pods // n_services)
    return [
        replace(
            made.pods[service],
            uid=f"{name}-{number}",
            name=f"{name}-{number}",
            node="",
            owner_uid=f"replica-set-{service}",
            scheduler_name=_NAME,
            created=0.0,
            started=None,
        )
        for number in range(n_pods)
        for service in (number // each,)
    ]


def _thread_seconds() -> dict[str, float]:
    """CPU of all threads so far."""
    seconds: dict[str, float] = {}
    for thread in threading.enumerate():
        if thread.ident is not None:
            clock = time.pthread_getcpuclockid(thread.ident)
            seconds[thread.name] = seconds.get(thread.name, 0.0) + time.clock_gettime(clock)
    return seconds
