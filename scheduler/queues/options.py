"""What a queue is: whose pods wait in it, and in what order they go."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from forecast.errors import InputError
from kube.objects.objects import PodInfo

__all__ = ["DEFAULT_PROFILES", "DEFAULT_QUEUE", "FairOptions", "Order", "PodQueue", "all_queues"]

DEFAULT_QUEUE: Final = "default"
DEFAULT_PROFILES: Final = ("job",)
"""Whose pods the default queue takes unless it names profiles: services and GPU pods go by priority and age."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LARGEST_WEIGHT: Final = 1e6


class Order(Enum):
    """Which of a queue's pods go first."""

    FIFO = "fifo"  # who waits longest, whatever the priority
    PRIORITY = "priority"  # then who waits longest
    DEADLINE = "deadline"  # within a priority who has to start first, then who waits longest
    DRF = "drf"  # within a priority the owner with the smallest dominant share; its own by priority, then age


@dataclass(frozen=True, slots=True)
class PodQueue:
    """
    name          : as in the annotation forecast-scheduler.io/queue; a DNS label
    namespaces    : a pod may wait here if it matches all of namespaces, profiles and labels that are given, and does
                    unless it names another queue; where none is given, any pod may that names the queue
    weight        : its share of the pods that are placed while others wait, too
    owner_label   : label of pods that says whose they are, for DRF; '' = their namespace
    owner_weights : shares that owners are entitled to, 1 unless said
    most_per_turn : pods of one turn, however many the loop takes; 0 = as many as it takes
    """

    name: str
    namespaces: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    order: Order = Order.DRF
    weight: float = 1.0
    owner_label: str = ""
    owner_weights: Mapping[str, float] = field(default_factory=dict)
    most_per_turn: int = 0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"a queue is called {self.name!r}: its name must be a DNS label, lower-case letters, digits and '-'"
            )
        _check_weight(self.weight, f"the weight of queue {self.name}")
        for owner, weight in self.owner_weights.items():
            _check_weight(weight, f"the weight of owner {owner!r} in queue {self.name}")
        if self.most_per_turn < 0:
            raise InputError(f"most_per_turn of queue {self.name} is {self.most_per_turn}: it must be 0 or above")

    @property
    def selects(self) -> bool:
        """Whether it takes pods that name no queue."""
        return bool(self.namespaces or self.profiles or self.labels)

    def is_open_to(self, pod: PodInfo, profile: str) -> bool:
        """Whether the pod, which that profile places, matches all that the queue asks for."""
        return (
            (not self.profiles or profile in self.profiles)
            and (not self.namespaces or pod.namespace in self.namespaces)
            and (not self.labels or self.labels.items() <= pod.labels.items())
        )


@dataclass(frozen=True, slots=True)
class FairOptions:
    """
    unqueued_weight : of pods that no queue takes: they are one queue, by priority and age
    longest_wait    : seconds; a pod that came, or was tried last, so long ago goes next whatever its priority;
                      0 = never
    due_lead        : seconds before the latest moment it may start a pod goes first in its queue; 0 = never
    quantum         : fewest pods of an owner's turn in a DRF queue, unless so many are more than 3 % of an even share;
                      turns that grow because they are many, or in vain, grow no further
    """

    unqueued_weight: float = 4.0
    longest_wait: float = 600.0
    due_lead: float = 300.0
    quantum: int = 64

    def __post_init__(self) -> None:
        _check_weight(self.unqueued_weight, "unqueued_weight")
        for name in ("longest_wait", "due_lead"):
            seconds = getattr(self, name)
            if not (math.isfinite(seconds) and seconds >= 0):
                raise InputError(f"{name} is {seconds} s: it must be 0 or above")
        if self.quantum < 1:
            raise InputError(f"quantum is {self.quantum}: it must be above 0")


def all_queues(queues: Sequence[PodQueue]) -> tuple[PodQueue, ...]:
    """These, and at the end the queue `default`, which takes what is left of its profiles. InputError where they
    contradict each other."""
    names = [queue.name for queue in queues]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"queue {twice[0]} is there twice: give each queue a name of its own")
    for queue in queues:
        if queue.name == DEFAULT_QUEUE and (queue.namespaces or queue.labels):
            raise InputError(
                f"queue {DEFAULT_QUEUE} has namespaces or labels: it takes all pods of its profiles that no other "
                "queue takes. Give this one another name"
            )
    default = [queue for queue in queues if queue.name == DEFAULT_QUEUE] or [PodQueue(DEFAULT_QUEUE)]
    default = [queue if queue.profiles else replace(queue, profiles=DEFAULT_PROFILES) for queue in default]
    return (*(queue for queue in queues if queue.name != DEFAULT_QUEUE), *default)


def _check_weight(weight: float, what: str) -> None:
    if not (math.isfinite(weight) and 0 < weight <= _LARGEST_WEIGHT):
        raise InputError(f"{what} is {weight}: it must be above 0 and at most {_LARGEST_WEIGHT:.0f}")
