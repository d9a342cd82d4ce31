"""Metrics of a replica that owns shards."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from scheduler.shards.keeper import ShardKeeper
from scheduler.shards.node_moves import NodeMoves


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
