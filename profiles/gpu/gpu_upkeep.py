"""The threads around the GPU profile: device searches, idle cores, the tide; and their events, metrics and routes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prometheus_client.registry import Collector

from base.periodic_task import PeriodicTask
from kube.events.event_recorder import EventRecorder
from kube.session.session_calls import Session
from profiles.gpu.dra.dra_metrics import DraCollector, WriteCounts
from profiles.gpu.dra.dynamic_resources import DynamicResources
from profiles.gpu.gpu_metrics import FragmentationGauges, IdleCpuCollector
from profiles.gpu.gpu_tables import GpuTables
from profiles.gpu.idle_cpu.offline_eviction import OfflineEviction
from profiles.gpu.profile import GPU
from profiles.gpu.tide.tide_bodies import TIDE_BODIES
from profiles.gpu.tide.tide_controller import Tell, Tide, WokenQueue
from profiles.gpu.tide.tide_routes import tide_router
from profiles.gpu.tide.workloads import WorkloadState
from profiles.online.colocation_loop import Colocation
from scheduler.handle import Handle
from scheduler.process import Process
from scheduler.queue.scheduling_queue import SchedulingQueue
from scorer.scorer import Scorer
from serving.threads import BackgroundThread, Upkeep


def planned_tide(
    tables: GpuTables,
    scorer: Scorer,
    queue: WokenQueue,
    session: Session,
    *,
    tell: Tell = lambda workload, reason, note: None,
    may_write: Callable[[], bool] = lambda: True,
    after: Callable[[], bool] = lambda: True,
) -> Tide:
    """Return the tide over these tables, not started yet; see Tide for the arguments."""
    return Tide(
        scorer.tables,
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
        clock=scorer.tables.clock,
    )


def gpu_upkeep(
    handle: Handle, tables: GpuTables, colocation: Colocation, process: Process, queue: SchedulingQueue
) -> Upkeep:
    """Return what goes on around the GPU profile: idle cores are lent, the tide moves trainings."""
    scorer, settings = handle.scorer, handle.settings
    events = EventRecorder(process.post, what="gpus", instance=process.instance)
    # In a dry run idle cores and the tide decide and report; neither writes, nor would the session let them.
    may_act = (lambda: True) if settings.dry_run else process.leads
    idle_cpu = OfflineEviction(
        scorer.tables,
        tables.node_pods,
        tables.rules.devices,
        colocation.bounds,
        tables.idle_cpu_options,
        settings.scheduler_names[GPU],
        ceiling=colocation.options.ceiling,
        evict=process.evict,
        tell=events.warn,
        may_write=may_act,
        after=process.is_read,
    )
    threads: list[BackgroundThread] = [events, PeriodicTask("device-searches", 1.0, tables.claims.tick), idle_cpu]
    collectors: list[Collector] = [
        FragmentationGauges(
            tables.fragmentation.state, tables.rules.devices, tables.live_mix, locked=scorer.tables.reading
        ),
        _dra_collector(tables.claims),
        IdleCpuCollector(scorer.tables, tables.idle_cpu, idle_cpu),
    ]
    if not tables.tide_options.enabled:
        return Upkeep(threads, collectors)
    tide = planned_tide(
        tables,
        scorer,
        queue,
        process.session,
        tell=partial(_tell_of_workload, events),
        may_write=may_act,
        after=process.is_read,
    )
    return Upkeep(
        [*threads, tide], [*collectors, *tide.metrics.collectors], [tide_router(lambda: tide.report)], TIDE_BODIES
    )


def _tell_of_workload(events: EventRecorder, workload: WorkloadState, reason: str, note: str) -> None:
    kind, key = workload.kind, workload.key
    regarding = {
        "apiVersion": f"{kind.group}/{kind.version}" if kind.group else kind.version,
        "kind": key.kind,
        "namespace": key.namespace,
        "name": key.name,
        "uid": workload.uid,
    }
    events.record(regarding, reason, note, is_warning=reason == "TideFailed")


def _dra_collector(claims: DynamicResources) -> DraCollector:
    writes = WriteCounts() if claims.writer is None else claims.writer.writes
    return DraCollector(claims.table, claims.feasibility, writes)
