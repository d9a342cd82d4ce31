"""Builds the job profile: filters, preferences and the gate over its tables, and what goes on around them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kube.client.kubernetes_contract import Subscription
from kube.objects.objects import PodInfo
from profiles.job.cron.cron_jobs import WATCHED_CRON_JOBS
from profiles.job.due_times import LatestStarts
from profiles.job.job_settings import JobOptions
from profiles.job.job_tables import job_tables
from profiles.job.job_upkeep import job_upkeep
from scheduler.handle import Handle, ProfileParts


def build(handle: Handle, options: JobOptions, starts: LatestStarts, ceiling: float) -> ProfileParts:
    """Return the parts of the job profile. Raises InputError.

    ceiling : share of capacity that nodes stay below while jobs run there, if other nodes allow it

    Preferences, in the order in which they narrow: a Job that failed at a provider goes to another one, or to the
    cluster.
    """
    tables = job_tables(handle, options, starts, ceiling)
    serverless = tables.serverless

    def listen(changed: Callable[[], None], pod_may_go: Callable[[PodInfo], None]) -> None:
        serverless.tables.on_room.append(changed)
        tables.storms.listeners.append(changed)

    return ProfileParts(
        instead=(serverless.toleration,),
        filters=(serverless.serverless, tables.off_peak, tables.storms.filter),
        first=(serverless.failed_nodes, serverless.serverless, tables.off_peak),
        gates=(tables.gate,),
        followers=(serverless.tables, serverless.failed_nodes, tables.bursts, tables.punctuality),
        # Pods are placed without CronJobs, too: then no storm is foreseen.
        subscriptions=(Subscription(WATCHED_CRON_JOBS, tables.cron_jobs),),
        listen=listen,
        # Storms, valley and providers reckon with the jobs of the whole cluster.
        decided_alone=lambda pod: "jobs are planned over all nodes",
        upkeep=partial(job_upkeep, handle, tables, options),
        keep_up=tables.storms.keep_up,
        tables=tables,
    )
