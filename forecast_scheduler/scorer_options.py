"""From settings to the options of the scorer and of its HTTP service."""

from __future__ import annotations

from forecast_scheduler.scorer_settings import ScorerSettings
from forecast_scheduler.serving_access import check_exposed, hosts_of
from forecast_scheduler.serving_settings import ServingSettings
from forecast_scheduler.settings import Settings
from scorer.options import ScorerOptions, ScoringOptions
from scorer.service.options import ServiceOptions
from serving.server import ServerOptions

__all__ = ["scorer_options", "server_options", "service_options"]


def scorer_options(settings: Settings) -> ScorerOptions:
    """What the scorer of each command does. Raises InputError where scores are misnamed."""
    prometheus = settings.prometheus
    capacities = {
        "disk": prometheus.disk_capacity,
        "network": prometheus.network_capacity,
        "log": prometheus.log_capacity,
    }
    return ScorerOptions(
        **{name: getattr(settings.scorer, name) for name in ScoringOptions.model_fields},
        usage_window=prometheus.step,
        capacities={name: value for name, value in capacities.items() if value is not None},
        job_schedulers=(settings.schedule.job.scheduler_name,),
    )


def service_options(settings: ScorerSettings) -> ServiceOptions:
    """Who may ask, and how much."""
    return ServiceOptions(
        token_files=tuple(settings.token_files),
        metrics_open=settings.metrics_open,
        max_body_bytes=settings.max_body_bytes,
        max_concurrent=settings.max_concurrent,
        hosts=hosts_of(settings),
        deadline_seconds=settings.deadline,
        node_metrics=settings.node_metrics,
        service_metrics=settings.service_metrics,
        report=settings.report,
    )


def server_options(settings: ServingSettings) -> ServerOptions:
    """Where a service listens. Raises InputError where it would answer anybody beyond this machine unasked."""
    check_exposed(settings)
    return ServerOptions(
        host=settings.host,
        port=settings.port,
        probe_port=settings.probe_port,
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
        client_ca=settings.client_ca,
        drain_seconds=settings.drain,
    )
