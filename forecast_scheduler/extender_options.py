"""From settings to the options of the extender, its filters and its HTTP service."""

from __future__ import annotations

from extender.options import ExtenderOptions
from extender.policies.compiling import PolicyDefaults
from extender.policies.filter_choice import (
    FilterOptions,
    RareDeviceMode,
    RareDeviceOptions,
    avoided_devices,
    chosen_filters,
)
from extender.remote_scores import RemoteScorer
from extender.service.options import ServiceOptions
from forecast_scheduler.extender_settings import ExtenderSettings
from forecast_scheduler.scorer_options import scorer_options
from forecast_scheduler.scorer_settings import ScorerSettings
from forecast_scheduler.settings import Settings

__all__ = ["extender_options", "extender_service_options", "filter_options", "policy_defaults", "remote_scorer"]


def extender_options(settings: ExtenderSettings) -> ExtenderOptions:
    """What the extender does. Raises InputError where filters or resources are misnamed."""
    options = filter_options(settings)
    return ExtenderOptions(
        filters=chosen_filters(options),
        avoided=avoided_devices(options.rare_devices),
        avoided_points=options.rare_devices.points,
        score_per_point=settings.score_per_point,
        weight=settings.weight,
        longest_reply=settings.longest_reply,
        charge_seconds=settings.charge,
        is_shadow=settings.shadow,
    )


def filter_options(settings: ExtenderSettings) -> FilterOptions:
    """What the filters go by; policies may say otherwise."""
    rare = settings.rare_devices
    return FilterOptions(
        domain=settings.domain,
        daemons=tuple(settings.daemon_schedulers),
        rare_devices=RareDeviceOptions(
            RareDeviceMode(rare.mode), tuple(rare.resources), tuple(rare.types), tuple(rare.type_labels), rare.points
        ),
        highest_peaks=settings.highest_peaks,
        standard=tuple(settings.standard_filters),
        predicts=settings.scorer.url is None,
    )


def policy_defaults(settings: Settings) -> PolicyDefaults:
    """What policies leave out, they have from here."""
    scorer, extender = scorer_options(settings), settings.extender
    longest = None if extender.scorer.url is None else extender.deadline
    return PolicyDefaults(scorer.weights, scorer.parameters, filter_options(extender), longest)


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
