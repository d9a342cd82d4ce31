"""Settings of queues, for pods of every profile (docs/queues.md), and the options that come of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from extender.queues.options import FairOptions, Order, PodQueue
from forecast_scheduler.setting_group import SettingGroup

if TYPE_CHECKING:
    from forecast_scheduler.schedule_settings import ScheduleSettings

__all__ = ["MOVED_KEYS", "QueueSettings", "fair_options", "pod_queues"]

MOVED_KEYS: Final = {
    "queues": "queues",
    "longest_wait": "longest_wait",
    "due_lead": "due_lead",
    "online_weight": "unqueued_weight",
}
"""Keys that were under schedule.job, and their names under schedule."""


class QueueSettings(SettingGroup):
    """Pods that wait in one line."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """As the annotation forecast-scheduler.io/queue names it."""

    profiles: list[Literal["online", "gpu", "job"]] = Field(default_factory=list)
    """Those whose pods may be in it; empty: all, of the queue `default` job."""

    namespaces: list[str] = Field(default_factory=list)
    """Those whose pods may be in it; empty: all."""

    labels: dict[str, str] = Field(default_factory=dict)
    """That pods in it have; empty: any."""

    order: Literal["fifo", "priority", "deadline", "drf"] = "drf"
    """Who goes first: who came first, who is more important, who has to start first, or the owner with the least."""

    weight: float = Field(default=1, gt=0)
    """Turns of this queue beside those of the others."""

    owner_label: str = ""
    """Label of pods that says between whom drf shares; empty: namespaces."""

    owner_weights: dict[str, float] = Field(default_factory=dict)
    """What owners are entitled to beside each other; 1 where nothing is said."""

    most_per_turn: int = Field(default=0, ge=0)
    """Pods placed in one turn; 0: as many as go together."""


def pod_queues(settings: ScheduleSettings) -> list[PodQueue]:
    """Raises InputError, see PodQueue."""
    return [
        PodQueue(
            name=one.name,
            namespaces=tuple(one.namespaces),
            profiles=tuple(one.profiles),
            labels=one.labels,
            order=Order(one.order),
            weight=one.weight,
            owner_label=one.owner_label,
            owner_weights=one.owner_weights,
            most_per_turn=one.most_per_turn,
        )
        for one in settings.queues
    ]


def fair_options(settings: ScheduleSettings) -> FairOptions:
    """Whose turn it is."""
    return FairOptions(
        unqueued_weight=settings.unqueued_weight, longest_wait=settings.longest_wait, due_lead=settings.due_lead
    )
