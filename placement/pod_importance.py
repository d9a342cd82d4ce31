"""Which of two pods stays, and which of two nodes is better emptied: the orders of preemption.

Source: MoreImportantPod and GetEarliestPodStartTime of pkg/scheduler/util/utils.go, pickOneNodeForPreemption of
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from kube.objects.objects import PodInfo

PRIORITY_OFFSET: Final = 2**31
"""Added to each priority that is summed: several pods of negative priority must not count less than one of them."""

SYSTEM_CRITICAL: Final = 2_000_000_000
"""Priority of system-cluster-critical (pkg/apis/scheduling/types.go): no pod is protected from such pods."""

LEAST_STANDING: Final = 1 - PRIORITY_OFFSET
"""Of pods that go before all others; one more than the lowest priority, so that several of them cost more than one."""

Standing = Callable[[PodInfo], int]
"""What counts as a pod's priority among those that may be evicted, at least LEAST_STANDING. Whether it may be, its
priority itself says."""


def priority_of(pod: PodInfo) -> int:
    """Return the default standing of a pod, as upstream."""
    return pod.priority


def start_of(pod: PodInfo) -> float:
    """Unix seconds; a pod that has not started yet starts last. PodInfo has the start of the first container where
    upstream reads status.startTime, some seconds earlier."""
    return math.inf if pod.started is None else pod.started


def tie_of(pod: PodInfo) -> int:
    """Order pods of equal importance; upstream leaves that to its sort."""
    return crc32(pod.uid.encode(errors="replace"))


def importance(pod: PodInfo, standing: Standing = priority_of) -> tuple[int, float, float, int]:
    """Sorts the most important first: the highest standing, then the earliest start."""
    return (-standing(pod), start_of(pod), pod.created, tie_of(pod))


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """Cost of emptying a node; less is better, compared from the first field to the last.

    violations     : victims whose PodDisruptionBudget permits no further disruption
    highest        : standing among the victims
    sum_priorities : standings of all victims, each raised by PRIORITY_OFFSET
    n_victims      : how many
    minus_start    : minus the earliest start of the victims of the highest standing: the pod that ran longest is kept
    row            : the first of otherwise equal nodes
    """

    violations: int
    highest: int
    sum_priorities: int
    n_victims: int
    minus_start: float
    row: int


def nothing(row: int) -> Cost:
    """Of no victim: less than of any."""
    return Cost(0, -PRIORITY_OFFSET, 0, 0, -math.inf, row)


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """Who has to go so that a pod fits on the node of a row: the most important first, then the rest of their gangs."""

    cost: Cost
    pods: tuple[PodInfo, ...]


def cost_of(row: int, victims: Sequence[PodInfo], violations: int, standing: Standing = priority_of) -> Cost:
    """Of at least one victim."""
    highest = max(map(standing, victims))
    return Cost(
        violations=violations,
        highest=highest,
        sum_priorities=sum(standing(pod) + PRIORITY_OFFSET for pod in victims),
        n_victims=len(victims),
        minus_start=-min(start_of(pod) for pod in victims if standing(pod) == highest),
        row=row,
    )
