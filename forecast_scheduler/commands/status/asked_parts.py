"""Asks a part what it says of itself: through the API server, or on this machine where `make cluster` has its parts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from kubernetes import client
from prometheus_client.parser import text_string_to_metric_families

from forecast_scheduler.commands.api_server_proxy import ProxiedService
from forecast_scheduler.commands.status.answers import answer_of
from forecast_scheduler.commands.status.facts import Sample, ServiceAnswer, Webhook
from forecast_scheduler.settings.document import Settings
from serving.remote_service import RemoteAddress, RemoteService
from serving.server_settings import ServerOptions

THROUGH_PROXY: Final = ("scorer", "advisor", "schedule")
"""Parts that the component reports-through-api-server opens to the API server."""

_SERVING: Final[dict[str, Callable[[Settings], ServerOptions]]] = {
    "scorer": lambda settings: settings.scorer.serving,
    "advisor": lambda settings: settings.advise.serving,
    "extender": lambda settings: settings.extender.serving,
    "schedule": lambda settings: settings.schedule.serving,
    "rebalancer": lambda settings: settings.rebalance.serving,
    "autoscaler": lambda settings: settings.autoscale.serving,
}
ON_THIS_MACHINE: Final = tuple(_SERVING)
WITHOUT_LEASE: Final = ("scorer", "extender")
"""Of those on this machine: another one whose Lease is not in the cluster works for another cluster."""

Ask = Callable[[str], bytes]
"""GET of a path. Raises ForecastError."""


def through_proxy(api: client.ApiClient, part: str, seconds: float) -> Ask:
    """Ask a part of the cluster. seconds: for one answer."""
    return partial(ProxiedService(api, part, seconds=seconds).request, "GET")


def on_this_machine(settings: Settings, part: str, seconds: float) -> Ask:
    """Ask a process at the port of the settings."""
    serving = _SERVING[part](settings)
    url = f"{'https' if serving.tls_cert else 'http'}://127.0.0.1:{serving.port}"

    def ask(path: str) -> bytes:
        with closing(RemoteService(RemoteAddress(url, ca=serving.tls_cert, seconds=seconds), part)) as service:
            return service.request("GET", path)

    return ask


def at_url(webhook: Webhook, seconds: float) -> Ask:
    """Ask the webhook where its configuration has the API server ask it."""

    def ask(path: str) -> bytes:
        with tempfile.NamedTemporaryFile(suffix=".pem") as ca:
            Path(ca.name).write_bytes(webhook.ca)
            authority = Path(ca.name) if webhook.ca else None
            address = RemoteAddress(urljoin(webhook.url, "/"), ca=authority, seconds=seconds)
            with closing(RemoteService(address, "webhook")) as service:
                return service.request("GET", path)

    return ask


def said_by(part: str, ask: Ask) -> ServiceAnswer | None:
    """Return what a part says of itself; None of those that say no more than that they are ready."""
    if part in ("extender", "webhook"):
        ask("/readyz")
        return None
    return answer_of(ask("/v1/status"))


def metrics_of(ask: Ask) -> tuple[Sample, ...]:
    """Return the metrics of a process."""
    return tuple(
        Sample(one.name, one.labels, one.value)
        for family in text_string_to_metric_families(ask("/metrics").decode())
        for one in family.samples
    )
