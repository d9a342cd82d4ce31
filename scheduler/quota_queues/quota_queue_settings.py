"""Settings of queues, in the section `schedule`: what a queue is, whose pods wait in it, in what order they go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, field_validator

from base.errors import InputError
from base.setting_group import Duration, SettingGroup
from kube.objects.objects import PodInfo

DEFAULT_QUEUE: Final = "default"
TENANT_QUEUE: Final = "tenants"
"""Of the pods that count in an ElasticQuota and that no queue of the settings takes."""

DEFAULT_PROFILES: Final = ("job",)
"""Whose pods the default queue takes unless it names profiles: services and GPU pods go by priority and age."""

_TENANT_WEIGHT: Final = 4.0
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

Weight = Annotated[float, Field(gt=0, le=1e6)]


class Order(Enum):
    """Which of a queue's pods go first."""

    FIFO = "fifo"  # who waits longest, whatever the priority
    PRIORITY = "priority"  # then who waits longest
    DEADLINE = "deadline"  # within a priority who has to start first, then who waits longest
    DRF = "drf"  # within a priority the owner with the smallest dominant share; its own by priority, then age


class PodQueue(SettingGroup):
    """Pods that wait in one line (docs/use/queues.md). A pod may wait here if it matches all of namespaces, profiles
    and labels that are given, and does unless it names another queue. If none is given, any pod may that names the
    queue."""

    name: str
    """As the annotation forecast-scheduler.io/queue names it. A DNS label: up to 63 of a-z, 0-9 and '-'."""

    namespaces: tuple[str, ...] = ()
    """Namespaces whose pods may wait here. Empty: all."""

    profiles: tuple[Literal["online", "gpu", "job"], ...] = ()
    """Profiles whose pods may wait here. Empty: all, and for the queue `default` job."""

    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels that pods here have. Empty: any."""

    order: Order = Order.DRF
    """Pods that go first. fifo: the oldest. priority: the most important. deadline: those that must start first. drf:
    those of the owner with the smallest dominant share."""

    weight: Weight = 1
    """Turns of this queue for each turn of a queue with weight 1, while both have pods that wait."""

    owner_label: str = ""
    """Label of pods that names their owner, for drf. Empty: their namespace is the owner."""

    owner_weights: Mapping[str, Weight] = Field(default_factory=dict)
    """Relative dominant shares that owners are entitled to, 1 unless given, for instance {search: 2}."""

    most_per_turn: int = Field(default=0, ge=0)
    """Pods placed in one turn, however many the loop takes. 0: as many as go together."""

    @field_validator("name")
    @classmethod
    def _is_a_label(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("the name of a queue must be a DNS label, lower-case letters, digits and '-'")
        return name

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


class FairOptions(SettingGroup):
    """Whose turn it is."""

    queues: tuple[PodQueue, ...] = ()
    """Queues of pods. Jobs that none takes are in the queue `default`; other such pods go by priority and age
    (docs/use/queues.md)."""

    unqueued_weight: Weight = 4
    """Turns of pods that no queue takes, for each turn of a queue with weight 1."""

    longest_wait: Duration = Field(default=600, ge=0)
    """A pod that came, or was tried last, this long ago goes next, whatever its priority. Needs a queue. 0: never."""

    due_lead: ClassVar[float] = 300.0
    """Seconds before the latest moment it may start from which a pod goes first in its queue."""

    quantum: ClassVar[int] = 64
    """Fewest pods of an owner's turn in a drf queue, unless this many are more than 3 % of an even share. Turns that
    grow because they are many, or in vain, grow no further: each turn costs a cycle."""

    @field_validator("queues")
    @classmethod
    def _fit_together(cls, queues: tuple[PodQueue, ...]) -> tuple[PodQueue, ...]:
        try:
            all_queues(queues)
        except InputError as error:
            raise ValueError(str(error)) from None
        return queues


def tenant_queue() -> PodQueue:
    """Return the queue that all tenants share: first goes who uses least of its min. It weighs what the pods
    of no queue weigh, which most of them would be."""
    return PodQueue(name=TENANT_QUEUE, weight=_TENANT_WEIGHT)


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
        if queue.name == TENANT_QUEUE:
            raise InputError(
                f"queue {TENANT_QUEUE} is the one in which pods with an ElasticQuota wait by themselves: give this one "
                "another name"
            )
    default = [queue for queue in queues if queue.name == DEFAULT_QUEUE] or [PodQueue(name=DEFAULT_QUEUE)]
    default = [queue if queue.profiles else queue.replace(profiles=DEFAULT_PROFILES) for queue in default]
    return (*(queue for queue in queues if queue.name != DEFAULT_QUEUE), *default)
