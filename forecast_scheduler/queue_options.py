"""Options of queues, from their settings."""

from __future__ import annotations

from forecast_scheduler.schedule_settings import ScheduleSettings
from scheduler.queues.options import FairOptions, Order, PodQueue

__all__ = ["fair_options", "pod_queues"]


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
