"""What goes on around the rules about nodes in threads of its own, and their metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fastapi import APIRouter
from kubernetes.client import ApiClient
from prometheus_client.registry import Collector

from placement.devices.metrics import DeviceCollector
from placement.node_rules import NodeRules
from placement.topology.metrics import TopologyCollector
from scorer.every import Every
from scorer.scorer import Scorer

_LOOK_SECONDS: Final = 1.0


class _Background(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class NodeRuleUpkeep:
    """Runs in every replica, leader or not: one that takes over knows what is scarce.

    jobs       : start in this order, and stop in reverse
    collectors : for /metrics
    """

    routers: Sequence[APIRouter] = ()
    bodies: Sequence[type] = ()

    def __init__(
        self, rules: NodeRules, scorer: Scorer, *, api: ApiClient | None = None, after: Callable[[], bool]
    ) -> None:
        """
        api   : for lists and watches; None = the rules read nothing beyond nodes and pods
        after : whether the cluster was read
        """

        def look() -> None:
            with scorer.reading():
                rules.look()

        self.jobs: Sequence[_Background] = [
            *(() if api is None else rules.sources(api)),
            Every("node-rules", _LOOK_SECONDS, look, after=after),
        ]
        self.collectors: Sequence[Collector] = [
            DeviceCollector(rules.devices),
            rules.cards.collector,
            rules.groups.collector,
            TopologyCollector(rules.topology.gangs, rules.topology.zones),
        ]
