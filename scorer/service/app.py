"""The application: routes, limits around them, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI
from prometheus_client.registry import Collector

from scorer.scorer_api import ScorerApi
from scorer.service.routes import forecasts, health, page_and_report, scores
from scorer.service.routes.page_and_report import page_router
from scorer.service.scorer_openapi import describe
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from scorer.service.scorer_state import ScorerService
from serving.hosts import ANY_HOST, Hosts
from serving.json_answers import add_error_handlers
from serving.kubernetes_access import KubernetesAccess
from serving.limits import RequestDeadline
from serving.middleware import add_middleware
from serving.openapi_parts import bare_app, serve_document


def create_app(
    scorer: ScorerApi,
    options: ScorerServiceOptions | None = None,
    *,
    access: KubernetesAccess | None = None,
    collectors: Iterable[Collector] = (),
    routers: Iterable[APIRouter] = (),
    bodies: Iterable[type] = (),
    hosts: Hosts = ANY_HOST,
    hot: float,
) -> FastAPI:
    """The scorer as an ASGI application. Raises InputError where a token file cannot be used.

    access     : clients allowed in addition to those with a token of the files; None = none
    collectors : further metrics to export
    routers    : of a process that holds a scorer; bodies: what these answer, for the OpenAPI document
    hosts      : names under which it is asked (serving/hosts.py)
    hot        : share of its capacity above which the page calls a node hot
    """
    options = options or ScorerServiceOptions()
    service = ScorerService(scorer, options, ScorerServiceMetrics(scorer, options, collectors))
    own = (
        scores.router,
        scores.explaining,
        forecasts.router,
        health.probes,
        health.router,
        page_and_report.router,
        page_router(hot),
    )
    described = partial(describe, more=tuple(bodies))
    return assembled("forecast-scheduler scorer", service, (*own, *routers), described, access, hosts)


def assembled(
    title: str,
    service: ScorerService,
    routers: Iterable[APIRouter],
    describe: Callable[..., dict[str, Any]],
    access: KubernetesAccess | None = None,
    hosts: Hosts = ANY_HOST,
) -> FastAPI:
    """An application of these routes within the limits of the service. Raises InputError as create_app does.

    describe : its OpenAPI document, of the application and `with_tokens`
    """
    options, metrics = service.options, service.metrics
    app = bare_app(title)
    app.state.service = service
    for router in routers:
        app.include_router(router)
    add_error_handlers(app)

    app.add_middleware(
        RequestDeadline, seconds=options.deadline
    )  # innermost: it counts from the moment the body is there
    with_tokens = add_middleware(
        app,
        options.serving,
        receive_seconds=options.deadline,
        hosts=hosts,
        access=access,
        observe=metrics.observe_request,
    )

    serve_document(app, lambda: describe(app, with_tokens=with_tokens))
    return app
