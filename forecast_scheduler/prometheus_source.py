"""The Prometheus server that the settings describe, as a source of history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from forecast.errors import InputError
from forecast_scheduler.training_settings import PrometheusSettings
from trainer.prometheus.connection import Connection, ConnectionOptions
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.queries import Queries

if TYPE_CHECKING:
    from trainer.prometheus.source import PrometheusSource

__all__ = ["open_connection", "open_source", "queries_of"]


def open_connection(
    settings: PrometheusSettings, url: str, *, timeout_seconds: float, patience_seconds: float
) -> Connection:
    """The server at `url` with the credentials of the settings; nothing is sent yet. Raises InputError."""
    if bool(settings.username) != (settings.password_file is not None):
        raise InputError("prometheus.username and prometheus.password_file belong together: set both or neither")
    return Connection(
        ConnectionOptions(
            url=url,
            bearer_token_file=settings.bearer_token_file,
            username=settings.username,
            password_file=settings.password_file,
            headers=settings.headers,
            ca_file=settings.ca_file,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
            insecure=settings.insecure,
            timeout_seconds=timeout_seconds,
            patience_seconds=patience_seconds,
        )
    )


def open_source(settings: PrometheusSettings, url: str) -> PrometheusSource:
    """The server at `url`, asked as the settings say; nothing is sent yet. Raises InputError."""
    # Tables of days bring pandas and pyarrow, 80 MB that services which only ask what is used now need not have.
    from trainer.prometheus.source import PrometheusSource
    from trainer.prometheus.source_options import SourceOptions

    connection = open_connection(settings, url, timeout_seconds=settings.timeout, patience_seconds=settings.patience)
    return PrometheusSource(
        connection,
        SourceOptions(
            step_seconds=int(settings.step),
            queries=queries_of(settings),
            log_source=LogSource(settings.log_source),
            log_rotation_cap_bytes=settings.log_rotation_cap_bytes,
            max_samples=settings.max_samples,
            parallel=settings.parallel,
            use_recording_rules=settings.recording_rules,
            disk_capacity=settings.disk_capacity,
            network_capacity=settings.network_capacity,
            log_capacity=settings.log_capacity,
        ),
    )


def queries_of(settings: PrometheusSettings) -> Queries:
    """The default queries with those of the settings in their places."""
    return replace(Queries(), **settings.queries)
