"""What nodes of the recorded groups cost: the price of a group is the mean of its nodes that have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autoscaling.capacity.node_pool import node_groups
from autoscaling.prices.node_prices import HOURS_PER_MONTH, NodePrices, PricedNode
from forecast.resources import CPU, MEMORY
from scorer.replay.recording import Recording

_NO_LABELS: Mapping[str, Mapping[str, str]] = {}


def recorded_nodes(
    names: Sequence[str], recording: Recording, labels: Mapping[str, Mapping[str, str]] = _NO_LABELS
) -> tuple[PricedNode, ...]:
    """The nodes of a recording, in its order, to be priced.

    names  : of all nodes of the history
    labels : by node name, where a cluster is there that knows them; a history alone has none
    """
    group_of = {row: group.name for group in node_groups(recording) for row in group.rows.tolist()}
    capacity = recording.known_capacity
    return tuple(
        PricedNode(name := names[node], labels.get(name, {}), capacity[row, CPU], capacity[row, MEMORY], group_of[row])
        for row, node in enumerate(recording.nodes.tolist())
    )


@dataclass(frozen=True, slots=True)
class GroupPrices:
    """per_hour: group -> price of one of its nodes, without groups of which no node has one. recorded: of all nodes"""

    per_hour: Mapping[str, float]
    recorded: NodePrices

    @classmethod
    def of(cls, prices: NodePrices) -> GroupPrices:
        """prices: of `recorded_nodes`"""
        names: dict[str, list[str]] = {}
        for node in prices.nodes:
            names.setdefault(node.group, []).append(node.name)
        found = {group: price for group, of in names.items() if (price := prices.of_group(of)) is not None}
        return cls(found, prices)

    def per_month(self, mix: Mapping[str, int]) -> float | None:
        """Cost of so many nodes of each group; None = one of the groups has no price."""
        if not mix or not mix.keys() <= self.per_hour.keys():
            return None
        return HOURS_PER_MONTH * sum(self.per_hour[group] * count for group, count in mix.items())

    def to_json(self, recorded: Mapping[str, int], cost_of: Mapping[str, float | None]) -> dict[str, Any]:
        """Under `money` of `capacity --json`: the recorded nodes, and what each rule would save against them.

        recorded : nodes of each group
        cost_of  : rule -> its nodes a month
        """
        now = self.per_month(recorded)
        saved = {rule: None if now is None or cost is None else now - cost for rule, cost in cost_of.items()}
        return {
            **self.recorded.to_json(),
            "recorded_per_month": now,
            "cost_per_month": dict(cost_of),
            "saved_per_month": saved,
        }
