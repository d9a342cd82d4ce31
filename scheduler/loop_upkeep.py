"""The threads around the loops: the Leases of shards, what tenants will need, warnings about annotations. And their
metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from base.periodic_task import PeriodicTask
from placement.cluster_events import ClusterEvent, EventKind
from scheduler.loop import ScheduleLoop
from scheduler.process import Process
from scheduler.schedule_settings import LoopSettings
from scheduler.shard_tables import ShardTables
from scheduler.shards.assignment import Dispatcher
from scheduler.shards.foreign_pods import PodLists
from scheduler.shards.keeper import ShardKeeper
from scheduler.shards.node_moves import NodeMoves
from scheduler.tenant_tables import TenantTables
from scorer.scorer import Scorer
from serving.openapi_parts import bodies_of
from serving.threads import BackgroundThread, Upkeep
from tenants import tenant_routes
from tenants.expected_need import ExpectedNeed
from tenants.tenant_metrics import TenantGauges
from tenants.tenant_report import TenantsReport, live_report
from tenants.tenant_routes import tenants_router

_HANGS_SECONDS: Final = 4.0
"""A loop that has not gone round for so long hangs: a cycle takes milliseconds, an idle round half a second."""

_LOOK_SECONDS: Final = 1.0


class ShardCollector(Collector):
    """Reads what the keeper knows when it is asked."""

    def __init__(self, keeper: ShardKeeper, moves: NodeMoves) -> None:
        self._keeper, self._moves = keeper, moves

    def collect(self) -> Iterator[Metric]:
        seen = self._keeper.seen()
        yield GaugeMetricFamily("forecast_shards_owned", "Shards that this replica places on", value=len(seen.owned))
        free = sum(not holder for holder in seen.holders.values())
        yield GaugeMetricFamily("forecast_shards_free", "Shards that no live replica owns", value=free)
        yield GaugeMetricFamily("forecast_shard_replicas", "Replicas that live", value=len(seen.members))
        yield GaugeMetricFamily(
            "forecast_shard_trouble", "1 = this replica must own nothing: see the log", value=bool(seen.trouble)
        )
        rooms = GaugeMetricFamily(
            "forecast_shard_room", "Share of the cluster that each shard has left, predicted", labels=["shard"]
        )
        for number, room in seen.rooms.items():
            rooms.add_metric([str(number)], room)
        yield rooms
        yield CounterMetricFamily(
            "forecast_shards_taken_over", "Shards taken from replicas that died", value=seen.taken_over
        )
        nodes = CounterMetricFamily(
            "forecast_shard_nodes_handed_over", "Nodes given to another shard, by why", labels=["why"]
        )
        nodes.add_metric(["loan"], self._moves.lent)
        nodes.add_metric(["balance"], max(0, self._moves.handed_over - self._moves.lent))
        yield nodes


def shard_upkeep(
    tables: ShardTables, settings: LoopSettings, loop: ScheduleLoop, *, after: Callable[[], bool]
) -> Upkeep:
    """To be stopped after the loop: what it owned is free for others then. after: whether the cluster was read"""
    core, live = loop.core, loop.core.scorer.tables

    def unhealthy() -> str:
        since = loop.since_cycle()
        return "" if since is None or since < _HANGS_SECONDS else f"the scheduling loop hangs, for {since:.0f} s"

    def leader_is_needed() -> bool:
        with live.reading():
            return any(tables.responsibility.is_last(one.pod) for one in core.queue.waiting())

    def use(dispatcher: Dispatcher) -> None:
        """Other nodes are ours, or other pods: called under the lock."""
        tables.responsibility.use(dispatcher)
        core.follower.look_again()
        core.queue.happened(ClusterEvent(EventKind.NODE_ADDED))

    keeper = ShardKeeper(
        tables.held.leases,
        settings.leader_election,
        settings.shards,
        tables.ownership,
        tables.moves,
        tables.leader,
        locked=live.reading,
        read_again=live.source.read_again,
        unhealthy=unhealthy,
        leads=tables.held.leads,
        is_needed=leader_is_needed,
        lists=PodLists(tables.held.api, live, foreign=tables.foreign, wanted=tables.responsibility.is_mine),
        version=live.source.pods_version,
        event_version=live.source.pod_event_version,
        use=use,
    )
    tables.stale.append(keeper.look_again)
    every = settings.leader_election.retry_period
    renewing = PeriodicTask("shard-leases", every, keeper.renew, after=after)
    stepping = PeriodicTask("shards", every, keeper.step, after=after)
    return Upkeep((keeper, renewing, stepping), (ShardCollector(keeper, tables.moves),))


def tenant_upkeep(tables: TenantTables, scorer: Scorer, process: Process) -> Upkeep:
    """Return the thread, none where what is lent does not depend on the forecast; metrics and routes."""
    threads: list[BackgroundThread] = []
    if tables.need is not None:
        tables.need.expect()
        look = partial(_look, tables.need)
        threads.append(PeriodicTask("needs-of-tenants", _LOOK_SECONDS, look, after=process.is_read))

    def report(n_hours: int) -> TenantsReport:
        return live_report(scorer.tables, tables.quotas, tables.need, n_hours=n_hours)

    return Upkeep(
        threads, (TenantGauges(report, tables.need),), (tenants_router(report),), tuple(bodies_of(tenant_routes))
    )


def _look(need: ExpectedNeed) -> None:
    if need.is_due():
        need.refresh()
