"""What it costs to move a pod, in node half hours of heat, and which pods may move in the middle of the day."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from kube.objects.objects import PodInfo, QosClass
from rebalancer.costs.move_facts import MoveFacts, Occasion
from rebalancer.costs.owner_wish import Wish, owner_wish
from rebalancer.costs.protected_pods import HIGHEST_USER_PRIORITY, needs_surge, protection
from rebalancer.rebalance_settings import CostOptions, UnforeseenOptions

_HALF_HOUR: Final = 1800.0
_HOUR: Final = 3600.0
_QOS_SHARE: Final = {QosClass.GUARANTEED: 1.0, QosClass.BURSTABLE: 0.5, QosClass.BEST_EFFORT: 0.0}


@dataclass(frozen=True, slots=True)
class MoveCost:
    """cost: node half hours of heat; infinite = it may not be moved. because: why not, or the largest part of the cost.

    by_surge : it may only be moved by starting a second replica first
    """

    cost: float
    because: str
    by_surge: bool = False

    @property
    def may_move(self) -> bool:
        return math.isfinite(self.cost)


def move_cost(pod: PodInfo, facts: MoveFacts, occasion: Occasion, options: CostOptions) -> MoveCost:
    """Return what moving a pod costs on this occasion, or why it may not be moved."""
    begin = occasion.begin.timestamp()
    wish = owner_wish(pod, facts.namespace_annotations, begin)
    reason = protection(pod, facts, occasion, wish, options)
    if reason:
        return MoveCost(math.inf, reason)
    parts = {
        "every move": options.move,
        "its start-up time": options.startup * facts.startup.seconds_or(options.default_startup) / _HALF_HOUR,
        "the share of its service": options.share / max(1, facts.replicas),
        "its priority": options.priority * _priority_share(pod.priority),
        "its QoS class": options.qos * _QOS_SHARE[pod.qos],
        "its age": options.young * _youth(begin - pod.created, options.young_for),
        "the work that its Job loses": options.lost_hour * _lost_hours(pod, facts, begin),
        wish.because or "its owner": options.rather_not if wish.wish is Wish.RATHER_NOT else 0.0,
    }
    largest = max(parts, key=parts.__getitem__)
    by_surge = needs_surge(facts) and not facts.service.runs_to_completion
    return MoveCost(sum(parts.values()), largest, by_surge=by_surge)


def _priority_share(priority: int) -> float:
    """0 to 1: priorities are chosen by orders of magnitude."""
    return min(1.0, math.log10(1 + max(0, priority)) / math.log10(HIGHEST_USER_PRIORITY))


def _youth(age: float, young_for: float) -> float:
    """1 just created, 0 when it is young no more."""
    return max(0.0, 1.0 - max(0.0, age) / young_for) if young_for else 0.0


def _lost_hours(pod: PodInfo, facts: MoveFacts, begin: float) -> float:
    if not facts.service.runs_to_completion:
        return 0.0
    return max(0.0, begin - (pod.created if pod.started is None else pod.started)) / _HOUR


def is_insensitive(pod: PodInfo, facts: MoveFacts, cost: MoveCost, options: UnforeseenOptions) -> bool:
    """Return whether users notice next to nothing if a pod moves now.

    It is cheap to move, one of several replicas, of no priority, and no pod that was given resources of its own.
    cost : for Occasion.at_once, so that its owner's hours count
    """
    return (
        cost.may_move
        and not cost.by_surge
        and cost.cost <= options.most_cost
        and pod.priority <= options.highest_priority
        and pod.qos is not QosClass.GUARANTEED
        and not facts.service.runs_to_completion
        and facts.ready_replicas >= options.least_replicas
    )
