"""Asks Prometheus for our metrics and for alerts that fire: through the API server's proxy of Services where its URL
names a Service, else directly.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Final
from urllib.parse import urlencode

import msgspec
from kubernetes import client

from base.errors import ForecastError
from forecast_scheduler.commands.status.advice import ADVICE_METRICS
from forecast_scheduler.commands.status.answers import alerts_of, samples_of, service_of_url
from forecast_scheduler.commands.status.at_once import NotRead
from forecast_scheduler.commands.status.facts import FiringAlert, Missing, Sample, Store
from kube.client.kubernetes_client import send
from serving.remote_service import RemoteAddress, RemoteService, error_words

_GONE: Final = ("no endpoints available", "not found", "connection refused")
"""Words of the API server about a Service behind which nothing listens; others may be those of a network policy."""

_METRICS: Final = (
    *ADVICE_METRICS,
    "forecast_model_age_seconds",
    "forecast_model_info",
    "forecast_train_data_gap_slots",
    "forecast_train_data_expected_slots",
)
_QUERY: Final = f'{{__name__=~"{"|".join(_METRICS)}",mode!="shadow"}}'

StoreAnswer = tuple[Store, tuple[Sample, ...], tuple[FiringAlert, ...] | None, tuple[Missing, ...]]


class _Gone(ForecastError):
    """Nothing listens where Prometheus should."""


def ask_store(api: client.ApiClient, url: str, seconds: float) -> StoreAnswer:
    """Return whether Prometheus answers, our metrics, the alerts (None = not known), and what could not be read.

    seconds : for one answer

    Raises NotRead: it may answer others.
    """
    service = service_of_url(url)
    ask = partial(_through_proxy, api, seconds, *service) if service else partial(_directly, seconds, url)
    store = Store(url, service[0] if service else "", answers=True)
    try:
        samples = samples_of(ask(f"/api/v1/query?{urlencode({'query': _QUERY})}"))
    except _Gone as error:
        gone = Store(store.address, store.namespace, answers=False, gone=str(error))
        return gone, (), None, (Missing("alerts", "Prometheus does not answer"),)
    except msgspec.DecodeError as error:
        raise NotRead(f"{url} does not answer as Prometheus: {error}") from error
    try:
        return store, samples, alerts_of(ask("/api/v1/alerts")), ()
    except (ForecastError, msgspec.DecodeError) as error:
        return store, samples, None, (Missing("alerts", str(error)),)


def _through_proxy(
    api: client.ApiClient, seconds: float, namespace: str, service: str, before: str, path: str
) -> bytes:
    url = f"/api/v1/namespaces/{namespace}/services/{service}/proxy{before}{path}"
    answer = send(api, "GET", url, seconds=seconds)
    if answer.is_success:
        return answer.body
    words = answer.why_none or f"{answer.status} {error_words(answer.body)}"
    what = f"Prometheus (services/proxy of {service} in {namespace})"
    if answer.status in (404, 502, 503) and any(word in words for word in _GONE):
        raise _Gone(f"{what} does not answer: {words}")
    raise NotRead(f"{what} cannot be asked: {words}")


def _directly(seconds: float, url: str, path: str) -> bytes:
    try:
        with closing(RemoteService(RemoteAddress(url, seconds=seconds), "Prometheus")) as service:
            return service.request("GET", path)
    except ForecastError as error:
        raise _Gone(str(error)) from error
