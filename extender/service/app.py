"""The application: routes, limits around them, and what they share."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI
from prometheus_client.registry import Collector

from extender.answers import ExtenderApi
from extender.service.metrics import ServiceMetrics
from extender.service.openapi import describe
from extender.service.options import ServiceOptions
from extender.service.routes import state, verbs
from extender.service.state import Service, error_response
from extender.service.workers import Workers
from kube.binding.binder import Binder
from scorer.answers import ScorerApi
from serving.body_budget import BodyBudget
from serving.documents import bare_app, serve_document
from serving.errors import add_error_handlers
from serving.hosts import ANY_HOST, HostCheck, Hosts
from serving.kubernetes_access import KubernetesAccess
from serving.limits import BodyLimit, Busy, Guard
from serving.security import SecurityHeaders, add_authentication

__all__ = ["create_app"]


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
    binder     : who answers /bind; None = binding is off
    access     : who may ask beside whoever has a token of the files; None = nobody
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

    # Starlette runs what was added last first: read this from the bottom up. The deadline is the routes' matter: it
    # counts from the moment the body is there, and ends with an answer rather than an error.
    budget = BodyBudget(options.max_body_bytes)
    app.add_middleware(
        BodyLimit,
        max_bytes=options.max_body_bytes,
        seconds=options.receive_timeout,
        budget=budget,
        answer=error_response,
    )
    app.add_middleware(Busy, max_concurrent=options.max_concurrent, budget=budget, answer=error_response)
    with_tokens = add_authentication(
        app, options.token_files, access, metrics_open=options.metrics_open, answer=error_response
    )
    app.add_middleware(HostCheck, hosts=hosts, answer=error_response)
    app.add_middleware(Guard, observe=metrics.observe_request, answer=error_response)
    app.add_middleware(SecurityHeaders)

    serve_document(app, lambda: describe(app, with_tokens=with_tokens))
    return app
