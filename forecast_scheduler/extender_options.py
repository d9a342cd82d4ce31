"""From settings to the options of the extender, its filters and its HTTP service."""

from __future__ import annotations

from extender.filters.catalogue import standard_filters
from extender.filters.domain import Domain
from extender.filters.filter import Filter
from extender.filters.machine_group import MachineGroup
from extender.filters.predicted_peak import PredictedPeak
from extender.filters.rare_devices import RareDevices
from extender.options import ExtenderOptions
from extender.remote_scores import RemoteScorer
from extender.service.options import ServiceOptions
from forecast.errors import InputError
from forecast_scheduler.extender_settings import ExtenderSettings
from forecast_scheduler.scorer_settings import ScorerSettings

__all__ = ["extender_options", "extender_service_options", "remote_scorer"]


def extender_options(settings: ExtenderSettings) -> ExtenderOptions:
    """What the extender does. Raises InputError where filters or resources are misnamed."""
    rare = settings.rare_devices
    devices = RareDevices(rare.resources, types=rare.types, type_labels=rare.type_labels, hard=rare.mode == "hard")
    filters: list[Filter] = [Domain(settings.domain), MachineGroup()]
    if rare.mode != "off":
        filters.append(devices)
    if settings.highest_peaks:
        if settings.scorer.url is not None:
            raise InputError(
                "extender.highest_peaks needs the forecast in this process, extender.scorer.url has it elsewhere: "
                "leave one of them out"
            )
        filters.append(PredictedPeak(settings.highest_peaks))
    return ExtenderOptions(
        filters=(*filters, *standard_filters(settings.standard_filters)),
        avoided=devices if rare.mode == "soft" else None,
        avoided_points=rare.points,
        score_per_point=settings.score_per_point,
        weight=settings.weight,
        longest_reply=settings.longest_reply,
        charge_seconds=settings.charge,
        is_shadow=settings.shadow,
    )


def extender_service_options(settings: ExtenderSettings, scorer: ScorerSettings) -> ServiceOptions:
    """Who may ask, and how long kube-scheduler waits. scorer: of the one inside, whose metrics are exported, too."""
    return ServiceOptions(
        token_files=tuple(settings.token_files),
        metrics_open=settings.metrics_open,
        max_body_bytes=settings.max_body_bytes,
        max_concurrent=settings.max_concurrent,
        deadline_seconds=settings.deadline,
        node_metrics=scorer.node_metrics,
        service_metrics=scorer.service_metrics,
    )


def remote_scorer(settings: ExtenderSettings) -> RemoteScorer | None:
    """The scorer elsewhere; None = the one inside is asked."""
    remote = settings.scorer
    if remote.url is None:
        return None
    return RemoteScorer(
        remote.url,
        token_file=remote.token_file,
        ca=remote.ca,
        client_cert=remote.client_cert,
        client_key=remote.client_key,
        seconds=settings.deadline,
    )
