"""OpenShift's own store, thanos-querier: it answers to the bearer token of a user or service account.

Only the cluster's administrators may create Services or Routes in the namespaces openshift-*, and we check the
certificate of the server, so the token goes to that server alone. Sources:
https://docs.redhat.com/en/documentation/monitoring_stack_for_red_hat_openshift (accessing metrics as a developer),
https://docs.redhat.com/en/documentation/openshift_container_platform (service CA certificates).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import requests
from kubernetes import client
from requests.adapters import HTTPAdapter

from base.errors import ForecastError
from forecast_scheduler.discovery.services import ServiceFacts
from kube.client.kubernetes_client import ask, authorization
from kube.client.kubernetes_steps import Request
from trainer.prometheus.metrics_store import MetricsStore

_QUERIER: Final = ("openshift-monitoring", "thanos-querier")
_ROUTE: Final = "/apis/route.openshift.io/v1/namespaces/openshift-monitoring/routes/thanos-querier"
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""OpenShift puts the authority of its Services beside the token: service-ca.crt."""


class _RouteSpec(msgspec.Struct):
    host: str = ""


class _Route(msgspec.Struct):
    spec: _RouteSpec


class _WithToken(HTTPAdapter):
    """Sends requests to the Route with the token of a kubeconfig, which may rotate."""

    def __init__(self, api: client.ApiClient) -> None:
        super().__init__()
        self._api = api

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """As its base, with Authorization."""
        request.headers.update(authorization(self._api))
        return super().send(request, *args, **kwargs)


def is_querier(service: ServiceFacts) -> bool:
    """Whether it is OpenShift's own store."""
    return (service.namespace, service.name) == _QUERIER


def querier_inside(address: str, account: Path = _ACCOUNT) -> MetricsStore | None:
    """For a pod; None = the cluster is no OpenShift: no authority is there that could prove who the server is."""
    token, authority = account / "token", account / "service-ca.crt"
    if not (token.is_file() and authority.is_file()):
        return None
    own = {"bearer_token_file": token, "ca_file": authority, "insecure": False}
    return MetricsStore(address, is_named=False, own=own)


def querier_outside(api: client.ApiClient) -> MetricsStore | None:
    """By its Route, which a user may read; None = the cluster is no OpenShift. Raises ForecastError."""
    answer = ask(api, Request(_ROUTE))
    if answer.status == 404:
        return None
    if not answer.is_success:
        raise ForecastError(
            f"the API server, asked for its Route, answered {answer.text}: grant get on routes, or pass --prometheus "
            "https://HOST-OF-THE-ROUTE"
        )
    if not authorization(api):
        raise ForecastError("it asks for a token, and the kubeconfig has none: `oc login` puts one there")
    try:
        host = msgspec.json.decode(answer.body, type=_Route).spec.host
    except msgspec.DecodeError as error:
        raise ForecastError(f"its Route cannot be read: {error}") from error
    return MetricsStore(f"https://{host}", _WithToken(api), is_named=False, own={"insecure": False})
