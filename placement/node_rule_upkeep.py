"""The threads around the rules about nodes, and their metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubernetes.client import ApiClient

from base.periodic_task import PeriodicTask
from placement.devices.metrics import DeviceCollector
from placement.node_rules import NodeRules
from placement.topology.metrics import TopologyCollector
from scorer.scorer import Scorer
from serving.upkeep import Upkeep

_LOOK_SECONDS: Final = 1.0


def node_rule_upkeep(
    rules: NodeRules, scorer: Scorer, *, api: ApiClient | None = None, after: Callable[[], bool]
) -> Upkeep:
    """Return what looks at the rules every second in every replica: one that takes over knows what is scarce.

    api   : for lists and watches; None = the rules read nothing beyond nodes and pods
    after : whether the cluster was read
    """

    def look() -> None:
        with scorer.tables.reading():
            rules.look()

    return Upkeep(
        [*(() if api is None else rules.sources(api)), PeriodicTask("node-rules", _LOOK_SECONDS, look, after=after)],
        [
            DeviceCollector(rules.devices),
            rules.cards.collector,
            rules.groups.collector,
            TopologyCollector(rules.topology.gangs, rules.topology.zones),
        ],
    )
