"""external.metrics.k8s.io/v1beta1, as kube-apiserver's aggregation layer asks for it.

https://github.com/kubernetes/metrics/blob/master/pkg/apis/external_metrics/v1beta1/types.go: paths are
namespaces/{namespace}/{metric}?labelSelector=..., answers ExternalMetricValueList. The horizontal pod autoscaler adds
up all items. Who may ask is kube-apiserver's question: it has authorized the request before it is passed on, and only
it holds the certificate that the connection asks for (docs/operate/security.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Query
from starlette.responses import Response

from autoscaling.replicas.loads_ahead import METRIC, LoadsAhead
from base.errors import InputError
from kube.objects.selectors import parse_selector
from serving.documents import bare_app
from serving.errors import add_error_handlers, json_response
from serving.hosts import ANY_HOST
from serving.middleware import add_middleware
from serving.options import ServingOptions

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
    """An error as the API server's clients read it: serving.errors.ErrorAnswer."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return json_response(body | {"message": message, "reason": _REASONS.get(code, ""), "code": code}, code, headers)
