"""The application: routes, limits around them, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastapi import FastAPI
from prometheus_client.registry import Collector

from admission.webhook import routes
from admission.webhook.routes import InEffect, Review, WebhookService, describe, error_response
from admission.webhook.webhook_metrics import WebhookMetrics
from admission.webhook_settings import WebhookOptions
from serving.hosts import ANY_HOST, Hosts
from serving.json_answers import add_error_handlers
from serving.kubernetes_access import KubernetesAccess
from serving.middleware import add_middleware
from serving.openapi_parts import bare_app, serve_document


def create_app(
    review: Review,
    store: InEffect,
    options: WebhookOptions | None = None,
    *,
    access: KubernetesAccess | None = None,
    collectors: Iterable[Collector] = (),
    hosts: Hosts = ANY_HOST,
    abilities: Callable[[], Mapping[str, Any]] = dict,
) -> FastAPI:
    """The webhook as an ASGI application. Raises InputError where a token file cannot be used.

    review     : body of an AdmissionReview -> answer, as Reviewer.begin
    store      : what is in effect, for probes and metrics
    access     : clients allowed in addition to those with a token of the files; None = none
    collectors : further metrics to export
    hosts      : names under which it is asked (serving/hosts.py)
    abilities  : what /readyz says in addition to being ready
    """
    options = options or WebhookOptions()
    app = bare_app("forecast-scheduler webhook")
    metrics = WebhookMetrics(collectors)
    app.state.service = WebhookService(review, store, metrics, abilities=abilities)
    app.include_router(routes.router)
    add_error_handlers(app, error_response)

    # There is no deadline: the API server has one of its own (timeoutSeconds), and a review waits for no one but the
    # advisor, for `advice.advisor.timeout`.
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
