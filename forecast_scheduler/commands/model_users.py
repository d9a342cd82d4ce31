"""Which processes use which model, by what they export to Prometheus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from trainer.prometheus.connection import Connection
from trainer.prometheus.options import ConnectionOptions

_QUERY = "count by (version, job) (forecast_model_info)"
_PATIENCE_SECONDS = 5.0
"""For a person who waits; a nightly run has more."""

Users = Mapping[str, Mapping[str, int]]
"""By version, processes by the job that scrapes them."""


def model_users(url: str, options: ConnectionOptions) -> Users:
    """Return who uses each model. Raises ForecastError if Prometheus does not answer, or refuses the query."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    quick = options.model_copy(update={"patience": min(options.patience, _PATIENCE_SECONDS)})
    answer = Connection(url, quick).instant("model_info", _QUERY)
    for at, value in zip(answer.series.tolist(), answer.values.tolist(), strict=True):
        labels = answer.labels[at]
        found[labels.get("version", "")][labels.get("job", "")] = int(value)
    return found
