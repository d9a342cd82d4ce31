"""Looks for overcommitted nodes and repairs them, with threads, events and metrics: what a scheduler process starts.

Two threads: an API server that hangs while a pod is being evicted must not keep overcommits from being counted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from base.periodic_task import PeriodicTask
from kube.client.eviction import Evict, Evicted
from kube.events.api_event import node_reference
from kube.events.event_recorder import EventRecorder, Post
from kube.objects.objects import PodInfo
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.index.node_labels import NodeLabels
from scheduler.overcommit.node_relief import NodeRelief, RepairReport
from scheduler.overcommit.overcommit import Overcommit, OvercommitCause
from scheduler.overcommit.overcommitted_nodes import LockedTables, OvercommitWatch
from scheduler.overcommit.repair_victims import RepairPlan, is_evictable, plan_repair

CONTROLLER: Final = "forecast-scheduler.io/scheduler"

_HOW: Final = {
    OvercommitCause.OWN: "although no other scheduler should place pods here",
    OvercommitCause.SHARED: "placed by schedulers that share the node",
    OvercommitCause.SHRUNK: "since the node has become smaller; nothing is evicted for that",
}

_SECONDS = 1.0
_MOST_EVENTS_WAITING = 200


def report_overcommit(events: EventRecorder, overcommit: Overcommit) -> None:
    """Post on the node what is beyond its allocatable, and how that came about."""
    amounts = ", ".join(f"{units} {_unit(kind)}of {kind}" for kind, units in sorted(overcommit.excess.items()))
    note = f"pods request {amounts} more than is allocatable, {_HOW[overcommit.cause]}"
    events.record(node_reference(overcommit.node), "NodeOvercommitted", note)


def report_repair(events: EventRecorder, report: RepairReport) -> None:
    """Post on the pod that was evicted, or on the node that could not be repaired."""
    if report.pod is None:
        events.record(node_reference(report.node), "OvercommitNotRepaired", report.why)
        return
    note = f"evicted: pods on node {report.node} request more than is allocatable there"
    events.record(report.pod, "EvictedForOvercommit", note, is_warning=False)


def _unit(kind: str) -> str:
    return {"cpu": "milli-cores ", "memory": "bytes ", "ephemeral-storage": "bytes "}.get(kind, "")


class OvercommitCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, watch: OvercommitWatch, repair: OvercommitRepair | None) -> None:
        """repair: None = nothing is repaired."""
        self._watch, self._repair = watch, repair

    def collect(self) -> Iterator[Metric]:
        total = CounterMetricFamily(
            "forecast_overcommits",
            "Times that a node came to have more requested than allocatable: by bindings on nodes that are our own or "
            "shared, or because it has shrunk.",
            labels=["cause"],
        )
        nodes = GaugeMetricFamily(
            "forecast_overcommitted_nodes", "Nodes with more requested than allocatable.", labels=["cause"]
        )
        counts, standing = self._watch.counts, Counter(one.cause for one in self._watch.standing)
        for cause in OvercommitCause:
            total.add_metric([cause.value], float(counts.get(cause, 0)))
            nodes.add_metric([cause.value], float(standing[cause]))
        yield total
        yield nodes
        if self._repair is None:
            return
        yield GaugeMetricFamily(
            "forecast_overcommits_unrepaired",
            "Overcommitted nodes on which no pod of ours that may be evicted would help.",
            value=float(self._repair.unrepaired),
        )
        evictions = CounterMetricFamily(
            "forecast_overcommit_evictions",
            "Evictions asked for to repair a node: evicted, refused by a disruption budget, failed, unknown when there "
            "was no answer.",
            labels=["outcome"],
        )
        asked = self._repair.evictions
        for outcome in Evicted:
            evictions.add_metric([outcome.value], float(asked.get(outcome, 0)))
        yield evictions


class OvercommitRepair(NodeRelief[Overcommit]):
    """`step` is called again and again by one thread."""

    def __init__(
        self,
        look: Callable[[], Iterable[Overcommit]],
        evict: Evict,
        scheduler_names: Collection[str],
        *,
        may_write: Callable[[], bool] = lambda: True,
        tell: Callable[[RepairReport], None] = lambda report: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        look            : returns the overcommits as they are now, OvercommitWatch.look
        scheduler_names : names of our schedulers
        may_write, tell : see NodeRelief
        """
        self._names = frozenset(scheduler_names)
        super().__init__(
            lambda: (one for one in look() if one.cause is not OvercommitCause.SHRUNK),
            self._planned,
            evict,
            what="an overcommitted node",
            may_write=may_write,
            tell=tell,
            clock=clock,
        )

    def _planned(self, one: Overcommit, leaving: Collection[str], refused: Collection[str]) -> RepairPlan:
        return plan_repair(one, self._is_ours, leaving=leaving, refused=refused)

    def _is_ours(self, pod: PodInfo) -> bool:
        return is_evictable(pod, self._names)


@dataclass(frozen=True, slots=True)
class RepairLoopOptions:
    """
    domain, shared  : see placement.filters.domain.Domain
    scheduler_names : of all our profiles: whose pods are ours
    repair          : whether to evict; else overcommits are only counted and reported
    instance        : name of this replica, as events show it
    """

    scheduler_names: tuple[str, ...]
    domain: str = ""
    shared: tuple[str, ...] = ()
    repair: bool = True
    instance: str = "forecast-scheduler"


class RepairLoop:
    """watch, repair (None = off), and `collector` for the metrics. A replica that does not lead only counts."""

    def __init__(
        self,
        tables: LockedTables,
        labels: NodeLabels,
        options: RepairLoopOptions,
        *,
        evict: Evict,
        post: Post | None = None,
        fit: NodeResourcesFit | None = None,
        may_write: Callable[[], bool] = lambda: True,
        after: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        evict     : api_server_evict(api); it may block
        post      : api_server_post(api), for events; None = none are written
        may_write : whether this replica leads; asked before everything that is written
        after     : whether the cluster has been read: what has to be true before the first look
        """
        self._options, self._may_write, self._clock = options, may_write, clock
        self._events = EventRecorder(
            post,
            what="nodes",
            instance=options.instance,
            action="RepairingOvercommit",
            max_waiting=_MOST_EVENTS_WAITING,
            clock=clock,
        )
        self.watch = OvercommitWatch(
            tables,
            labels,
            domain=options.domain,
            shared=options.shared,
            fit=fit,
            tell=self._tell,
            clock=clock,
        )
        self.repair: OvercommitRepair | None = None
        self._jobs = [PeriodicTask("overcommit-watch", _SECONDS, self.watch.look, after=after)]
        if options.repair:
            self.repair = OvercommitRepair(
                self.watch.look,
                evict,
                options.scheduler_names,
                may_write=may_write,
                tell=self._tell,
                clock=clock,
            )
            self._jobs.append(PeriodicTask("overcommit-repair", _SECONDS, self.repair.step, after=after))
        self.collector = OvercommitCollector(self.watch, self.repair)

    def start(self) -> None:
        """Begin. Once only."""
        self._events.start()
        for job in self._jobs:
            job.start()

    def stop(self) -> None:
        """End; an eviction under way is waited for."""
        for job in reversed(self._jobs):
            job.stop()
        self._events.stop()

    def _tell(self, report: Overcommit | RepairReport) -> None:
        if not self._may_write():
            return
        if isinstance(report, Overcommit):
            report_overcommit(self._events, report)
        else:
            report_repair(self._events, report)
