"""What a queue of jobs is: whose pods wait in it, and in what order they go."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from forecast.errors import InputError

__all__ = ["DEFAULT_QUEUE", "FairOptions", "JobQueue", "Order", "all_queues"]

DEFAULT_QUEUE: Final = "default"
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LARGEST_WEIGHT: Final = 1e6


class Order(Enum):
    """Which of a queue's pods go first."""

    FIFO = "fifo"  # who waits longest, whatever the priority
    PRIORITY = "priority"  # then who waits longest
    DEADLINE = "deadline"  # within a priority who has to start first, then who waits longest
    DRF = "drf"  # within a priority the owner with the smallest dominant share; its own by priority, then age


@dataclass(frozen=True, slots=True)
class JobQueue:
    """
    name          : as in the annotation forecast-scheduler.io/queue; a DNS label
    namespaces    : whose pods may wait here, and do unless they say otherwise; none = any, but only on demand
    weight        : its share of the pods that are placed while others wait, too
    owner_label   : label of pods that says whose they are, for DRF; '' = their namespace
    owner_weights : shares that owners are entitled to, 1 unless said
    most_per_turn : pods of one turn, however many the loop takes; 0 = as many as it takes
    """

    name: str
    namespaces: tuple[str, ...] = ()
    order: Order = Order.DRF
    weight: float = 1.0
    owner_label: str = ""
    owner_weights: Mapping[str, float] = field(default_factory=dict)
    most_per_turn: int = 0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"a job queue is called {self.name!r}: its name must be a DNS label, lower-case letters, digits and '-'"
            )
        _check_weight(self.weight, f"the weight of job queue {self.name}")
        for owner, weight in self.owner_weights.items():
            _check_weight(weight, f"the weight of owner {owner!r} in job queue {self.name}")
        if self.most_per_turn < 0:
            raise InputError(f"most_per_turn of job queue {self.name} is {self.most_per_turn}: it must be 0 or above")


@dataclass(frozen=True, slots=True)
class FairOptions:
    """
    online_weight : of pods of other profiles, which are one queue beside those of jobs
    longest_wait  : seconds; a pod that came, or was tried last, so long ago goes next whatever its priority; 0 = never
    due_lead      : seconds before the latest moment it may start a job goes first in its queue; 0 = never
    quantum       : fewest pods of an owner's turn in a DRF queue, unless so many are more than 3 % of an even share;
                    turns that grow because they are many, or in vain, grow no further
    """

    online_weight: float = 4.0
    longest_wait: float = 600.0
    due_lead: float = 300.0
    quantum: int = 64

    def __post_init__(self) -> None:
        _check_weight(self.online_weight, "online_weight")
        for name in ("longest_wait", "due_lead"):
            seconds = getattr(self, name)
            if not (math.isfinite(seconds) and seconds >= 0):
                raise InputError(f"{name} is {seconds} s: it must be 0 or above")
        if self.quantum < 1:
            raise InputError(f"quantum is {self.quantum}: it must be above 0")


def all_queues(queues: Sequence[JobQueue]) -> tuple[JobQueue, ...]:
    """These, and the queue `default`, which any pod may wait in. InputError where they contradict each other."""
    names = [queue.name for queue in queues]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"job queue {twice[0]} is there twice: give each queue a name of its own")
    for queue in queues:
        if queue.name == DEFAULT_QUEUE and queue.namespaces:
            raise InputError(
                f"job queue {DEFAULT_QUEUE} is for {len(queue.namespaces)} namespaces only: it takes what no other "
                "queue takes and must be open to all; call this one otherwise"
            )
    return tuple(queues) if DEFAULT_QUEUE in names else (*queues, JobQueue(DEFAULT_QUEUE))


def _check_weight(weight: float, what: str) -> None:
    if not (math.isfinite(weight) and 0 < weight <= _LARGEST_WEIGHT):
        raise InputError(f"{what} is {weight}: it must be above 0 and at most {_LARGEST_WEIGHT:.0f}")
