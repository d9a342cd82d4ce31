"""Live tables in the early morning: node-0 will be hot tonight, the others have room."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from base.excluded import ExcludedOptions
from base.local_hours import ChangeWindows
from forecast.hot_share import HOT_SHARE
from kube.objects.objects import PodInfo, PodPhase
from rebalancer.plan_maker import PlanMaker, PlanSources
from rebalancer.rebalance_settings import BudgetOptions, PlanningOptions, RebalanceOptions
from testing.constants import with_constants
from tests.scorer.live_cluster import at, pod_of
from tests.scorer.scorer_at import LiveScorer

NODES = ("node-0", "node-1", "node-2", "node-3")
NO_SECOND_THOUGHTS = PlanningOptions(improvement_effort=1)
"""They take seconds, and how good a plan is matters only in tests/rebalancer/planning."""

OPTIONS = with_constants(RebalanceOptions(budget=BudgetOptions(share=0.5)), planning=NO_SECOND_THOUGHTS)


def ready(pod: PodInfo, hour: float = 3.0) -> PodInfo:
    """The pod, old enough to move, running and ready."""
    since = at(hour) - 86_400.0
    return replace(pod, created=since, started=since, scheduled=since, ready=since + 20.0, phase=PodPhase.RUNNING)


def pods_on_the_first_node(n_services: int = 4, each: int = 3) -> list[PodInfo]:
    """Pods of several services on node-0, and as many of each on node-3."""
    return [
        ready(pod_of(number, f"{number}-{n}-{on}", on))
        for number in range(n_services)
        for n in range(each)
        for on in ("node-0", "node-3")
    ]


def hot_cluster(hour: float = 3.0, *, size: float = 4.0, pods: Collection[PodInfo] | None = None) -> LiveScorer:
    """size: of node-0; the others are ten times as large."""
    placed = pods_on_the_first_node() if pods is None else pods
    return LiveScorer(hour=hour, pods=list(placed), sizes=(size, 40.0, 40.0, 40.0))


def plan_sources(**given: Any) -> PlanSources:
    """Sources of a plan whose pods may go to any node at any time. given: fields that differ"""
    nothing: dict[str, Any] = {"excluded": ExcludedOptions(), "changes": ChangeWindows()}
    return PlanSources(**{"may_go": lambda pod: NODES, **nothing, **given})


def maker_of(
    tested: LiveScorer,
    sources: PlanSources | None = None,
    options: RebalanceOptions = OPTIONS,
    hot: float = HOT_SHARE,
) -> PlanMaker:
    """A maker whose pods may go to any node."""
    return PlanMaker(tested.scorer.tables, sources or plan_sources(), options, hot)
