"""Looking for overcommitted nodes and repairing them, with threads and events: what a scheduler process starts.

Two threads: an API server that hangs while a pod is being evicted must not keep overcommits from being counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from base.periodic_task import PeriodicTask
from kube.events.event_recorder import EventRecorder, Post
from kube.eviction.eviction import Evict
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.index.node_labels import NodeLabels
from scheduler.overcommit.metrics import OvercommitCollector
from scheduler.overcommit.node_relief import RepairReport
from scheduler.overcommit.overcommit import Overcommit
from scheduler.overcommit.overcommit_events import event_of_overcommit, event_of_repair
from scheduler.overcommit.overcommitted_nodes import OvercommitWatch, Tables
from scheduler.overcommit.repair_executor import OvercommitRepair

_SECONDS = 1.0
_MOST_EVENTS_WAITING = 200


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
        tables: Tables,
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
            post, what="nodes", instance=options.instance, max_waiting=_MOST_EVENTS_WAITING, clock=clock
        )
        self.watch = OvercommitWatch(
            tables,
            labels,
            domain=options.domain,
            shared=options.shared,
            fit=fit,
            tell=self._tell_overcommit,
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
                tell=self._tell_repair,
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

    def _tell_overcommit(self, overcommit: Overcommit) -> None:
        self._record(partial(event_of_overcommit, overcommit))

    def _tell_repair(self, report: RepairReport) -> None:
        self._record(partial(event_of_repair, report))

    def _record(self, event: Callable[..., dict[str, Any]]) -> None:
        if self._may_write():
            self._events.record(partial(event, at=self._clock(), instance=self._options.instance))
