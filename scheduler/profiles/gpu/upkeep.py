"""What goes on around the GPU profile in threads of its own, the tide and idle cores, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from fastapi import APIRouter
from kubernetes.client import ApiClient
from prometheus_client.registry import Collector

from kube.events.event_recorder import Post
from kube.session.api_session import ApiSession
from scheduler.overcommit.eviction import Evict
from scheduler.profiles.gpu.dra.metrics import DraCollector, WriteCounts
from scheduler.profiles.gpu.dra.plugin import DynamicResources
from scheduler.profiles.gpu.fragmentation.metrics import FragmentationGauges
from scheduler.profiles.gpu.idle_cpu.care import IdleCpuCare
from scheduler.profiles.gpu.idle_cpu.metrics import IdleCpuCollector
from scheduler.profiles.gpu.tables import GpuTables
from scheduler.profiles.gpu.tide.controller import Queue, Session, Tell, Tide
from scheduler.profiles.gpu.tide.service.bodies import TIDE_BODIES
from scheduler.profiles.gpu.tide.service.routes import tide_router
from scheduler.profiles.gpu.tide.workloads import WorkloadState
from scheduler.profiles.online.colocating import Colocation
from scheduler.reporting.pod_events import PodEvents
from scorer.every import Every
from scorer.scorer import Scorer


class _Background(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


def planned_tide(
    tables: GpuTables,
    scorer: Scorer,
    queue: Queue,
    session: Session,
    *,
    tell: Tell = lambda workload, reason, note: None,
    may_write: Callable[[], bool] = lambda: True,
    after: Callable[[], bool] = lambda: True,
) -> Tide:
    """The tide over these tables, not started yet; see Tide for the arguments."""
    return Tide(
        scorer,
        tables.tide,
        tables.tide_room,
        queue,
        session,
        tables.tide_options,
        tables.pod_gpus,
        tell=tell,
        no_forecast_because=lambda: "; ".join(scorer.status().reasons),
        may_write=may_write,
        after=after,
        clock=scorer.clock,
    )


class GpuUpkeep:
    """
    jobs       : to be started in this order, and stopped in reverse
    collectors : for /metrics
    routers    : of /v1/tide
    bodies     : their schemas
    """

    def __init__(
        self,
        tables: GpuTables,
        scorer: Scorer,
        colocation: Colocation,
        queue: Queue,
        session: ApiSession,
        *,
        api: ApiClient,
        scheduler_name: str,
        has_tide: bool,
        evict: Evict,
        post: Post | None,
        instance: str,
        may_write: Callable[[], bool],
        after: Callable[[], bool],
    ) -> None:
        """
        api       : for lists and watches
        has_tide  : whether trainings are planned and moved
        evict     : of offline pods; it may block
        post      : of events; None = none are written
        may_write : whether this replica leads
        after     : whether the cluster was read
        """
        self._events = PodEvents(post, instance=instance, what="gpus")
        # In a dry run both decide and tell; neither writes, nor would the session let them.
        is_dry_run = tables.idle_cpu_options.dry_run
        may_act = (lambda: True) if is_dry_run else may_write
        idle_cpu = IdleCpuCare(
            scorer,
            tables.node_pods,
            tables.rules.devices,
            colocation.bounds,
            tables.idle_cpu_options,
            scheduler_name,
            evict=evict,
            tell=self._events.tell,
            may_write=may_act,
            after=after,
        )

        jobs: list[_Background] = [
            *tables.sources(api),
            self._events,
            Every("device-searches", 1.0, tables.claims.tick),
            idle_cpu,
        ]
        collectors: list[Collector] = [
            FragmentationGauges(
                tables.fragmentation.state, tables.rules.devices, tables.live_mix, locked=scorer.reading
            ),
            _dra_collector(tables.claims),
            IdleCpuCollector(scorer, tables.idle_cpu, idle_cpu),
        ]
        self.routers: Sequence[APIRouter] = ()
        self.bodies: Sequence[type] = ()
        if has_tide:
            tide = planned_tide(
                tables, scorer, queue, session, tell=self._tell_of_workload, may_write=may_act, after=after
            )
            jobs.append(tide)
            collectors += tide.metrics.collectors
            self.routers, self.bodies = (tide_router(lambda: tide.report),), TIDE_BODIES
        self.jobs: Sequence[_Background] = jobs
        self.collectors: Sequence[Collector] = collectors

    def _tell_of_workload(self, workload: WorkloadState, reason: str, note: str) -> None:
        kind, key = workload.kind, workload.key
        regarding = {
            "apiVersion": f"{kind.group}/{kind.version}" if kind.group else kind.version,
            "kind": key.kind,
            "namespace": key.namespace,
            "name": key.name,
            "uid": workload.uid,
        }
        self._events.tell_about(regarding, reason, note, is_warning=reason == "TideFailed")


def _dra_collector(claims: DynamicResources) -> DraCollector:
    writes = WriteCounts() if claims.writer is None else claims.writer.writes
    return DraCollector(claims.table, claims.feasibility, writes)
