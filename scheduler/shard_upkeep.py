"""The thread that keeps the Leases of shards, around the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from base.periodic_task import PeriodicTask
from placement.cluster_events import ClusterEvent, EventKind
from scheduler.placing_core import PlacingCore
from scheduler.settings import ScheduleSettings
from scheduler.shard_tables import ShardTables
from scheduler.shards.dispatch import Dispatcher
from scheduler.shards.keeper import ShardKeeper
from scheduler.shards.metrics import ShardCollector
from scheduler.shards.pod_lists import PodLists
from serving.upkeep import Background

_HANGS_SECONDS: Final = 4.0
"""A loop that has not gone round for so long hangs: a cycle takes milliseconds, an idle round half a second."""


class ShardUpkeep(Background):
    """To be stopped after the loop: what it owned is free for others then."""

    def __init__(
        self,
        tables: ShardTables,
        settings: ScheduleSettings,
        core: PlacingCore,
        *,
        since_round: Callable[[], float | None],
        after: Callable[[], bool],
    ) -> None:
        """since_round: see Scheduler; after: whether the cluster was read"""
        self._core, self._tables, self._since_round = core, tables, since_round
        live = core.scorer.tables
        self.keeper = ShardKeeper(
            tables.held.leases,
            settings.lease,
            settings.shards,
            tables.ownership,
            tables.moves,
            locked=live.reading,
            read_again=live.read_again,
            unhealthy=self._unhealthy,
            leads=tables.held.leads,
            is_needed=self._leader_is_needed,
            lists=PodLists(tables.held.api, live, foreign=tables.foreign, wanted=tables.responsibility.is_mine),
            version=live.pods_version,
            event_version=live.pod_event_version,
            use=self._use,
        )
        tables.responsibility.leads = self.keeper.decides_alone
        tables.foreign.leader_follows_all = self.keeper.follows_all
        tables.stale.append(self._set_stale)
        self.collector = ShardCollector(self.keeper, tables.moves)
        every = settings.lease.retry_period
        self._tasks = (
            PeriodicTask("shard-leases", every, self.keeper.renew, after=after),
            PeriodicTask("shards", every, self.keeper.step, after=after),
        )

    def start(self) -> None:
        for task in self._tasks:
            task.start()

    def stop(self) -> None:
        for task in self._tasks:
            task.stop()
        self.keeper.stop()

    def _unhealthy(self) -> str:
        since = self._since_round()
        return "" if since is None or since < _HANGS_SECONDS else f"the scheduling loop hangs, for {since:.0f} s"

    def _leader_is_needed(self) -> bool:
        with self._core.scorer.tables.reading():
            return any(self._tables.responsibility.is_last(one.pod) for one in self._core.queue.waiting())

    def _set_stale(self) -> None:
        self.keeper.is_stale = True

    def _use(self, dispatcher: Dispatcher) -> None:
        """Other nodes are ours, or other pods: called under the lock."""
        self._tables.responsibility.dispatcher = dispatcher
        self._core.follower.look_again()
        self._core.queue.happened(ClusterEvent(EventKind.NODE_ADDED))
