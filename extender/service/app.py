"""The application: routes, limits around them, and what they share."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI
from prometheus_client.registry import Collector

from extender.extender_api import ExtenderApi
from extender.service.metrics import ServiceMetrics
from extender.service.openapi import describe
from extender.service.options import ServiceOptions
from extender.service.routes import state, verbs
from extender.service.state import Service, error_response
from extender.service.workers import Workers
from kube.binding.binder import Binder
from scorer.scorer_api import ScorerApi
from serving.direct_routes import DirectRoutes
from serving.documents import bare_app, serve_document
from serving.errors import add_error_handlers
from serving.hosts import ANY_HOST, Hosts
from serving.kubernetes_access import KubernetesAccess
from serving.middleware import add_middleware


def create_app(
    extender: ExtenderApi,
    options: ServiceOptions | None = None,
    *,
    scorer: ScorerApi | None = None,
    binder: Binder | None = None,
    access: KubernetesAccess | None = None,
    collectors: Iterable[Collector] = (),
    hosts: Hosts = ANY_HOST,
    node_metrics: bool = True,
    service_metrics: bool = True,
) -> FastAPI:
    """The extender as an ASGI application. Raises InputError where a token file cannot be used.

    scorer     : the one inside, whose metrics are exported here; None = it runs elsewhere
    binder     : answers /bind; None = binding is off
    access     : clients allowed in addition to those with a token of the files; None = none
    collectors : further metrics to export
    hosts      : names under which it is asked (serving/hosts.py)
    node_metrics, service_metrics : whether the scorer's series of each node and of each service are exported
    """
    options = options or ServiceOptions()
    app = bare_app("forecast-scheduler extender")
    metrics = ServiceMetrics(extender, scorer, collectors, nodes=node_metrics, services=service_metrics)
    app.state.service = Service(
        extender,
        options,
        metrics,
        binder,
        workers=Workers(options.threads, "extender"),
        binders=Workers(options.bind_threads, "binder"),
        renderers=Workers(1, "metrics"),
    )
    for router in (verbs.router, state.router):
        app.include_router(router)
    add_error_handlers(app, error_response)
    app.add_middleware(DirectRoutes, routes=verbs.router.routes, answer=error_response)

    # The routes keep the deadline: it counts from the moment the body is there, and ends with an answer, not an error.
    with_tokens = add_middleware(
        app,
        options,
        receive_seconds=options.receive_timeout,
        hosts=hosts,
        access=access,
        observe=metrics.observe_request,
        answer=error_response,
    )

    serve_document(app, lambda: describe(app, with_tokens=with_tokens))
    return app
