"""All that a scheduler process needs of virtual nodes: tables and plugins, made before the cluster is read, and the
threads that look after providers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from base.periodic_task import PeriodicTask
from cluster.tables.state import ClusterState
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from kube.session.request_retries import Session
from placement.virtual_nodes.options import ServerlessOptions
from scheduler.profiles.job.failed_nodes import FailedNodes
from scheduler.profiles.job.serverless.failure_allowance import Affording
from scheduler.profiles.job.serverless.metrics import ServerlessCollector
from scheduler.profiles.job.serverless.serverless import Serverless
from scheduler.profiles.job.serverless.start_watch import ProviderWatch, Tell
from scheduler.profiles.job.serverless.tables import ProviderTables
from scheduler.profiles.job.serverless.taint_toleration import ProviderToleration

_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ServerlessPlugins:
    """
    tables       : Follower, to be attached before `failed_nodes`; the queue receives `tables.on_room`
    serverless   : Filter, NodePreference, EnqueueExtensions
    toleration   : Filter in the place of TaintToleration
    failed_nodes : Follower, and NodePreference to be asked before `serverless`: a Job that failed at a provider goes
                   to another one, or to the cluster's nodes, where both are left
    """

    tables: ProviderTables
    serverless: Serverless
    toleration: ProviderToleration
    failed_nodes: FailedNodes


def serverless_plugins(
    state: ClusterState,
    options: ServerlessOptions,
    *,
    is_ours: Callable[[PodInfo], bool],
    is_assumed: Callable[[str], bool],
    clock: Callable[[], float] = time.time,
) -> ServerlessPlugins:
    """See ProviderTables; under the lock of the tables."""
    tables = ProviderTables(state, options, is_ours=is_ours, is_assumed=is_assumed, clock=clock)
    failed_nodes = FailedNodes(state, provider_at=tables.provider_at, provider_rows=tables.rows_of, clock=clock)
    tables.on_failed.append(failed_nodes.failed)
    return ServerlessPlugins(tables, Serverless(tables, options), ProviderToleration(options), failed_nodes)


class ProviderCare:
    """watch, and `collector` for the metrics; a replica that does not lead only looks."""

    def __init__(
        self,
        plugins: ServerlessPlugins,
        session: Session,
        scheduler_names: Collection[str],
        *,
        locked: Callable[[], AbstractContextManager[object]],
        tell: Tell = lambda pod, reason, note: None,
        may_write: Callable[[], bool] = lambda: True,
        after: Callable[[], bool] = lambda: True,
        jobs: Mapping[str, JobInfo] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        locked   : takes the lock of the tables
        tell     : posts events (PodEvents.tell)
        after    : whether the cluster has been read: must be true before the first look
        jobs     : by UID, which say how many pods they can afford to lose; None = all of them
        """
        self.watch = ProviderWatch(
            plugins.tables,
            session,
            scheduler_names,
            locked=locked,
            tell=tell,
            may_write=may_write,
            affording=None if jobs is None else Affording(jobs),
            clock=clock,
        )
        self.collector = ServerlessCollector(plugins.tables, self.watch, clock=clock)
        self._every = PeriodicTask("providers", _SECONDS, self.watch.step, after=after)

    def start(self) -> None:
        """Begin. Once only."""
        self._every.start()

    def stop(self) -> None:
        """End, once what is under way is done."""
        self._every.stop()
