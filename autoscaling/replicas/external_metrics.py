"""external.metrics.k8s.io/v1beta1, as kube-apiserver's aggregation layer asks for it; and who that layer is, by its
authority and names in a ConfigMap.
"""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, FastAPI, Query
from kubernetes import client
from starlette.responses import Response

from autoscaling.replicas.loads_ahead import METRIC, LoadsAhead
from base.errors import ForecastError, InputError
from base.periodic_task import PeriodicTask
from kube.client.kubernetes_client import send
from kube.objects.labels import parse_selector
from serving.hosts import ANY_HOST
from serving.json_answers import add_error_handlers, json_response
from serving.middleware import add_middleware
from serving.openapi_parts import bare_app
from serving.server_settings import ServingOptions

GROUP: Final = "external.metrics.k8s.io"
VERSION: Final = f"{GROUP}/v1beta1"
_RECEIVE_SECONDS: Final = 5.0
_REASONS: Final = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 503: "ServiceUnavailable"}

_GROUP: Final = {
    "name": GROUP,
    "versions": [{"groupVersion": VERSION, "version": "v1beta1"}],
    "preferredVersion": {"groupVersion": VERSION, "version": "v1beta1"},
}

_RESOURCES: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": VERSION,
    "resources": [
        {
            "name": METRIC,
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
    ],
}

logger = logging.getLogger(__name__)
_SECONDS: Final = 10.0
_EVERY_SECONDS: Final = 60.0
_AUTHORITY: Final = "requestheader-client-ca-file"


def external_metrics_app(loads: Callable[[], LoadsAhead]) -> FastAPI:
    """The API as an application, within the limits that all services have. loads: those that may be said"""
    app = bare_app("forecast-scheduler external metrics")
    app.state.service = SimpleNamespace(draining=False)
    app.include_router(_router(loads))
    add_error_handlers(app, _status)
    add_middleware(
        app,
        ServingOptions(),
        receive_seconds=_RECEIVE_SECONDS,
        hosts=ANY_HOST,
        access=None,
        observe=lambda *request: None,
        answer=_status,
    )
    return app


def _router(loads: Callable[[], LoadsAhead]) -> APIRouter:
    router = APIRouter()

    @router.get("/apis")
    async def groups() -> Response:
        """The one group that is served."""
        return json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]})

    @router.get(f"/apis/{GROUP}")
    async def group() -> Response:
        """Say that this group has one version."""
        return json_response({"kind": "APIGroup", "apiVersion": "v1", **_GROUP})

    @router.get(f"/apis/{VERSION}")
    async def resources() -> Response:
        """Say that this version has one metric."""
        return json_response(_RESOURCES)

    @router.get(f"/apis/{VERSION}/namespaces/{{namespace}}/{{metric}}")
    async def values(
        namespace: str, metric: str, selector: str = Query("", alias="labelSelector", max_length=4096)
    ) -> Response:
        """Expected loads of the services of a namespace whose labels match."""
        if metric != METRIC:
            return _status(404, f"there is no metric {metric[:100]}: the only one is {METRIC}")
        try:
            wanted = parse_selector(selector)
        except InputError as error:
            return _status(400, str(error))
        known = loads()
        found = known.matching(namespace, wanted)
        at = datetime.fromtimestamp(known.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {"metricName": METRIC, "metricLabels": dict(one.labels), "timestamp": at, "value": quantity(one.value)}
            for one in found
        ]
        return json_response({"kind": "ExternalMetricValueList", "apiVersion": VERSION, "metadata": {}, "items": items})

    return router


def quantity(value: float) -> str:
    """A Kubernetes quantity in thousandths, rounded up: the controller computes in these."""
    return f"{math.ceil(round(value * 1000, 6))}m"


def _status(code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as the API server's clients read it: serving.json_answers.ErrorAnswer."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return json_response(body | {"message": message, "reason": _REASONS.get(code, ""), "code": code}, code, headers)


# Who kube-apiserver's aggregation layer is, as it says in a ConfigMap: its authority and the names it goes by.
#
# https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/#authentication-flow
# Needs get on the ConfigMap extension-apiserver-authentication in kube-system, which the Role
# extension-apiserver-authentication-reader grants.

_NAMES: Final = "requestheader-allowed-names"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """authority: PEM file, kept up to date; names: common names, () = any that it signed"""

    authority: Path
    names: tuple[str, ...]


@contextmanager
def follow_front_proxy(api: client.ApiClient, config_map: str) -> Iterator[FrontProxy]:
    """Read the ConfigMap, NAMESPACE/NAME, and follow its authority while the context lasts; new names take a restart.

    Raises InputError where there is none, or it cannot be read.
    """
    authority, names = _read(api, config_map)
    with tempfile.TemporaryDirectory(prefix="forecast-front-proxy-") as directory:
        path = Path(directory) / "authority.pem"
        path.write_text(authority, encoding="utf-8")

        def refresh() -> None:
            try:
                now, _ = _read(api, config_map)
            except ForecastError as error:
                logger.warning("the authority of the aggregation layer stays as it was: %s", error)
                return
            if now != path.read_text(encoding="utf-8"):
                unfinished = path.with_suffix(".new")
                unfinished.write_text(now, encoding="utf-8")
                unfinished.replace(path)

        every = PeriodicTask("front-proxy", _EVERY_SECONDS, refresh)
        every.start()
        try:
            yield FrontProxy(path, names)
        finally:
            every.stop()


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def _read(api: client.ApiClient, config_map: str) -> tuple[str, tuple[str, ...]]:
    namespace, _, name = config_map.partition("/")
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
    answer = send(api, "GET", path, seconds=_SECONDS)
    try:
        found = msgspec.json.decode(answer.body, type=_ConfigMap) if answer.is_success else None
        names: Any = msgspec.json.decode(found.data.get(_NAMES, "[]")) if found is not None else []
    except msgspec.DecodeError as error:
        raise InputError(f"ConfigMap {config_map} cannot be read: {' '.join(str(error).split())[:300]}") from error
    if found is None:
        raise InputError(
            f"ConfigMap {config_map} was not read ({answer.text}): bind the Role "
            "extension-apiserver-authentication-reader of kube-system, or set serving.client_ca of "
            "autoscale.external_metrics, and client_config_map: '' there"
        )
    if not found.data.get(_AUTHORITY):
        raise InputError(
            f"ConfigMap {config_map} has no {_AUTHORITY}: this cluster has no aggregation layer "
            "(kube-apiserver --requestheader-client-ca-file)"
        )
    return found.data[_AUTHORITY], tuple(str(one) for one in names)
