"""Which pods may move in the middle of the day, because of the unforeseen."""

from __future__ import annotations

from kube.objects.objects import PodInfo, QosClass
from rebalancer.costs.facts import MoveFacts
from rebalancer.costs.move_cost import MoveCost
from rebalancer.options import UnforeseenOptions


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
