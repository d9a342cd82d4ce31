"""What the job profile keeps in addition to the scorer's tables, made from settings: made before the cluster is read.

expected runs of pods, Jobs, CronJobs --> due times, storms
pods, nodes ----------> providers, failed nodes, punctuality
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from base.arrays import Floats
from cluster.runs.expected import ExpectedRuns
from forecast.service_key import ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import NodeInfo, PodInfo
from placement.virtual_node_table import REAL
from profiles.job.cron.cron_jobs import CronJobs
from profiles.job.due_times import LatestStarts
from profiles.job.job_metrics import ValleyMetrics
from profiles.job.job_settings import JobOptions
from profiles.job.profile import JOB
from profiles.job.serverless.serverless_parts import ServerlessPlugins, serverless_plugins
from profiles.job.storm.recurring_starts import PastBursts
from profiles.job.storm.storm_watch import StormWatch
from profiles.job.storm.storms import Storm
from profiles.job.valley.off_peak import OffPeak
from profiles.job.valley.punctuality import Punctuality
from profiles.job.valley.valley_gate import ValleyGate
from scheduler.handle import Handle


@dataclass(frozen=True, slots=True)
class JobTables:
    """
    scheduler_name : of the profile
    run_seconds    : how long a pod of a service is expected to run
    is_own_node    : of the domains that jobs may use, and no provider's
    """

    scheduler_name: str
    cron_jobs: CronJobs
    jobs: Mapping[str, JobInfo]
    runs: ExpectedRuns
    run_seconds: Callable[[PodInfo, ServiceKey], float]
    due_of: Callable[[PodInfo], float]
    is_own_node: Callable[[NodeInfo], bool]
    serverless: ServerlessPlugins
    gate: ValleyGate
    off_peak: OffPeak
    punctuality: Punctuality
    valley_metrics: ValleyMetrics
    bursts: PastBursts
    storms: StormWatch


def job_tables(handle: Handle, ours: JobOptions, starts: LatestStarts, ceiling: float) -> JobTables:
    """Return the tables, which follow nothing yet. ceiling: see build. Raises InputError."""
    scorer, cluster, nodes = handle.scorer, handle.cluster, handle.nodes
    state, clock, name = cluster.state, scorer.tables.clock, handle.settings.scheduler_names[JOB]
    runs, cron_jobs, due_of = cluster.expected_runs, starts.cron_jobs, starts.due_of

    def of_service(service: ServiceKey) -> float:
        return runs.of_service(service).seconds

    def usual_starts(services: Collection[ServiceKey], first: float, n_minutes: int) -> Floats:
        predicted = cluster.predicted  # replaced as a whole: no lock is needed
        if predicted is None:
            return np.zeros(n_minutes)
        return predicted.profiles.expected_starts(services, predicted.horizon, first, n_minutes)

    bursts = PastBursts(
        state, of_service, scheduler_names=(name,), zone=ours.storm.zone, usual_starts=usual_starts, clock=clock
    )

    def is_ours(pod: PodInfo) -> bool:
        return pod.scheduler_name == name and not pod.stands_in  # the room of a Reservation starts nowhere

    def run_seconds(pod: PodInfo, service: ServiceKey) -> float:
        return runs.of(pod, service).seconds

    def serverless_room(storm: Storm) -> int:
        return serverless.serverless.room_for(storm.pod_request, state, nodes.in_domain)

    is_assumed = cluster.assumed.__contains__
    serverless = serverless_plugins(state, ours.serverless, is_ours=is_ours, is_assumed=is_assumed, clock=clock)
    metrics = ValleyMetrics()
    return JobTables(
        scheduler_name=name,
        cron_jobs=cron_jobs,
        jobs=state.jobs,
        runs=runs,
        run_seconds=run_seconds,
        due_of=due_of,
        is_own_node=nodes.are_real,
        serverless=serverless,
        gate=ValleyGate(ours.valley, due_of, clock=clock),
        off_peak=OffPeak(ceiling, ours.valley, due_of, runs.seconds),
        punctuality=Punctuality(
            state,
            is_assumed,
            is_ours,
            terms=starts.dated.of,
            is_settled=starts.dated.is_settled,
            metrics=metrics,
            clock=clock,
        ),
        valley_metrics=metrics,
        bursts=bursts,
        storms=StormWatch(
            scorer.tables,
            cron_jobs.all,
            of_service,
            ours.storm,
            changes=lambda: cron_jobs.changes,
            scheduler_names=(name,),
            domains=nodes.domains,
            bursts=bursts.expected,
            group_of=bursts.group_of,
            due_of=due_of,
            serverless_room=serverless_room,
            is_virtual=lambda node: nodes.claims.of(node) != REAL,
            after=lambda: scorer.tables.synced and cron_jobs.version > 0,
            clock=clock,
        ),
    )
