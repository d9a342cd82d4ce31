"""The scheduling process as an application: its own routes, and the scorer's that change nothing.

Left out are /v1/scores and /v1/charges, by which another scheduler says where its pod will probably go: what is assumed
of our pods is the loops' matter alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI
from prometheus_client.registry import Collector

from scheduler import scheduling_answers
from scheduler.scheduling_answers import SchedulingApi
from scheduler.scheduling_metrics import SchedulingMetrics
from scheduler.service import queue_routes, state_routes
from scheduler.service.state_routes import SchedulingService
from scorer.judgement import Judge
from scorer.scorer_api import ScorerApi
from scorer.service import scorer_openapi
from scorer.service.app import assembled
from scorer.service.routes import forecasts, health, scores
from scorer.service.routes.page_and_report import page_router
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.hosts import ANY_HOST, Hosts
from serving.kubernetes_access import KubernetesAccess
from serving.openapi_parts import bodies_of

_DESCRIPTION = "Which pods wait for what in our own scheduling loops, beside what the scorer inside knows.\n\n"


def describe(app: FastAPI, *, with_tokens: bool, more: Iterable[type] = ()) -> dict[str, Any]:
    """The document of the application. more: bodies of further routes."""
    types = [*bodies_of(scheduling_answers), *more]
    document = scorer_openapi.describe(app, with_tokens=with_tokens, more=types)
    document["info"]["description"] = _DESCRIPTION + document["info"]["description"]
    return document


def create_app(
    scorer: ScorerApi,
    scheduling: SchedulingApi,
    metrics: SchedulingMetrics,
    options: ScorerServiceOptions | None = None,
    *,
    access: KubernetesAccess | None = None,
    collectors: Iterable[Collector] = (),
    routers: Iterable[APIRouter] = (),
    bodies: Iterable[type] = (),
    hosts: Hosts = ANY_HOST,
    judge: Judge | None = None,
    hot: float,
) -> FastAPI:
    """The process as an ASGI application. Raises InputError where a token file cannot be used.

    metrics    : written by the loops, exported here
    access     : clients allowed in addition to those with a token of the files; None = none
    collectors : further metrics to export
    routers    : of profiles that have routes of their own; bodies: what these answer, for the OpenAPI document
    hosts      : names under which it is asked (serving/hosts.py)
    judge      : what the loops would do with a pod; None = explanations do not say it
    hot        : share of its capacity above which the page calls a node hot
    """
    options = options or ScorerServiceOptions()
    exported = ScorerServiceMetrics(scorer, options, [*metrics.collectors, *collectors], stages=metrics.stages)
    service = SchedulingService(scorer, options, exported, judge, scheduling=scheduling)
    own = (
        queue_routes.router,
        state_routes.router,
        scores.explaining,
        forecasts.router,
        health.router,
        page_router(hot),
    )
    described = partial(describe, more=tuple(bodies))
    return assembled("forecast-scheduler schedule", service, (*own, *routers), described, access, hosts)
