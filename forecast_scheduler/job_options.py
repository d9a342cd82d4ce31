"""From settings to the options of the job profile."""

from __future__ import annotations

from typing import Final

from forecast_scheduler.job_settings import JobSettings, ProviderSettings
from placement.virtual_nodes.options import First, Provider, ServerlessOptions
from scheduler.profiles.job.storm.options import StormOptions
from scheduler.profiles.job.valley.options import ValleyOptions

__all__ = ["serverless_options", "storm_options", "valley_options"]

_GIB: Final = 2.0**30


def serverless_options(settings: JobSettings) -> ServerlessOptions:
    """Raises InputError, see Provider."""
    ours = settings.serverless
    return ServerlessOptions(
        first=First(ours.first), providers=tuple(map(_provider, ours.providers)), tolerate=ours.tolerate
    )


def _provider(one: ProviderSettings) -> Provider:
    return Provider(
        name=one.name,
        labels=one.labels,
        most_pods=one.most_pods,
        most_cpu=one.most_cpu,
        most_memory=None if one.most_memory is None else one.most_memory * _GIB,
        most_starting=one.most_starting,
        price_cpu_hour=one.price_cpu_hour,
        price_memory_gib_hour=one.price_memory_gib_hour,
        most_spend_per_hour=one.most_spend_per_hour,
        weight=one.weight,
        start_timeout=one.start_timeout,
        backoff_initial=one.backoff_initial,
        backoff_longest=one.backoff_longest,
    )


def storm_options(settings: JobSettings) -> StormOptions:
    """Raises InputError, see StormOptions."""
    ours = settings.storm
    return StormOptions(
        reserve=ours.enabled,
        threshold=ours.threshold,
        lead=ours.lead,
        grace=ours.grace,
        most_room=ours.most_room,
        zone=ours.zone,
    )


def valley_options(settings: JobSettings) -> ValleyOptions:
    """When jobs with slack start."""
    ours = settings.valley
    return ValleyOptions(
        shift=ours.enabled,
        hours=ours.hours,
        first_wait=ours.first_wait,
        margin=ours.margin,
        ceiling=settings.ceiling,
    )
