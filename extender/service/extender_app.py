"""The application: routes, limits around them, and what they share."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI
from prometheus_client.registry import Collector

from extender.answer_settings import ExtenderServiceOptions
from extender.extender_api import ExtenderApi
from extender.service.extender_metrics import ExtenderMetrics
from extender.service.extender_openapi import describe
from extender.service.extender_state import ExtenderService, error_response
from extender.service.routes import state, verbs
from extender.service.workers import Workers
from kube.binding.binding_steps import Binder
from scorer.scorer_api import ScorerApi
from serving.hosts import ANY_HOST, Hosts
from serving.json_answers import add_error_handlers
from serving.kubernetes_access import KubernetesAccess
from serving.middleware import DirectRoutes, add_middleware
from serving.openapi_parts import bare_app, serve_document


def create_app(
    extender: ExtenderApi,
    options: ExtenderServiceOptions | None = None,
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
    options = options or ExtenderServiceOptions()
    app = bare_app("forecast-scheduler extender")
    metrics = ExtenderMetrics(extender, scorer, collectors, nodes=node_metrics, services=service_metrics)
    app.state.service = ExtenderService(
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
        options.serving,
        receive_seconds=options.receive_timeout,
        hosts=hosts,
        access=access,
        observe=metrics.observe_request,
        answer=error_response,
    )

    serve_document(app, lambda: describe(app, with_tokens=with_tokens))
    return app
