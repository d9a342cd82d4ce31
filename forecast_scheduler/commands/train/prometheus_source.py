"""The Prometheus server that the settings describe, as a source of history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.prometheus.connection import Connection
from trainer.prometheus.options import PrometheusOptions

if TYPE_CHECKING:
    from trainer.prometheus.source import PrometheusSource


def open_source(settings: PrometheusOptions, url: str) -> PrometheusSource:
    """The server at `url`, asked as the settings say; nothing is sent yet. Raises InputError."""
    # Tables of days bring pandas and pyarrow, 80 MB that services which only ask what is used now need not have.
    from trainer.prometheus.source import PrometheusSource

    return PrometheusSource(Connection(url, settings), settings)
