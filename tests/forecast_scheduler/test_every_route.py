"""Every route of every service: closed without a token, open with one, and in the table of docs/operate/security.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest
from fastapi import APIRouter, FastAPI

import admission.webhook.webhook_app
import extender.service.extender_app
import scheduler.service.scheduling_app
import scorer.service.app
from admission.webhook_settings import WebhookOptions, WebhookServing
from advisor.preference_route import preferences_router
from advisor.preferred_pods import PreferredPods
from extender.answer_settings import ExtenderServiceOptions as ExtenderOptions
from extender.answer_settings import ExtenderServing
from forecast.hot_share import HOT_SHARE
from profiles.gpu.tide.tide_report import NO_REPORT
from profiles.gpu.tide.tide_routes import tide_router
from profiles.job.job_upkeep import jobs_router
from profiles.job.jobs_plan_answers import JobReports
from rebalancer.night_grades import Trust
from rebalancer.rebalance_settings import RebalanceMode
from rebalancer.rebalancing import RebalancingState
from rebalancer.standing import plan_router
from scheduler.scheduling_metrics import SchedulingMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.security import PAGE_FILES
from serving.server_settings import ServingOptions
from tenants.tenant_report import TenantsReport
from tenants.tenant_routes import tenants_router
from testing.app_client import AppClient
from tests.admission.webhook.simple_store import SimpleStore, simple_review
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender
from tests.scheduler.service.simple_scheduling import SimpleScheduling
from tests.scorer.service.fake_scorer import FakeScorer

Tokens = tuple[Path, ...]

# Probes show no token, and the page's files hold no data: it asks for a token itself.
OPEN = {"/healthz", "/readyz", *PAGE_FILES}


def _scorer(tokens: Tokens) -> FastAPI:
    return scorer.service.app.create_app(
        FakeScorer(2), ScorerServiceOptions(serving=ServingOptions(token_files=tokens)), hot=HOT_SHARE
    )


def _extender(tokens: Tokens) -> FastAPI:
    options = ExtenderOptions(serving=ExtenderServing(token_files=tokens), deadline=20)
    return extender.service.extender_app.create_app(SimpleExtender(), options, binder=SimpleBinder())


def _schedule(tokens: Tokens) -> FastAPI:
    return _loops(
        tokens, jobs_router(JobReports(clock=lambda: 0.0).plan), tide_router(lambda: NO_REPORT), _no_tenants()
    )


def _advise(tokens: Tokens) -> FastAPI:
    return _loops(tokens, preferences_router(cast(PreferredPods, None)), _no_tenants())  # its body is refused first


def _no_tenants() -> APIRouter:
    return tenants_router(lambda n_hours: TenantsReport(0.0))


def _loops(tokens: Tokens, *routers: APIRouter) -> FastAPI:
    options = ScorerServiceOptions(serving=ServingOptions(token_files=tokens))
    return scheduler.service.scheduling_app.create_app(
        FakeScorer(2), SimpleScheduling(), SchedulingMetrics(), options, routers=routers, hot=HOT_SHARE
    )


def _rebalance(tokens: Tokens) -> FastAPI:
    state = RebalancingState(Trust(RebalanceMode.OFF))
    routers = [plan_router(lambda: state)]
    return scorer.service.app.create_app(
        FakeScorer(2), ScorerServiceOptions(serving=ServingOptions(token_files=tokens)), routers=routers, hot=HOT_SHARE
    )


def _webhook(tokens: Tokens) -> FastAPI:
    return admission.webhook.webhook_app.create_app(
        simple_review, SimpleStore(), WebhookOptions(serving=WebhookServing(token_files=tokens))
    )


SERVICES: dict[str, Callable[[Tokens], FastAPI]] = {
    "scorer": _scorer,
    "extender": _extender,
    "schedule": _schedule,
    "advise": _advise,
    "rebalance": _rebalance,
    "autoscale": _scorer,
    "webhook": _webhook,
}


def routes_of(routes: Iterable[object]) -> Iterator[tuple[str, str]]:
    """(method, path) of each, in routers that were included, too."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from routes_of(included.routes)
        else:
            methods, path = getattr(route, "methods", None), getattr(route, "path", None)
            assert methods and path, f"{route} is no route with methods: what is it, and who may ask it?"
            yield from ((method, path) for method in sorted(methods - {"HEAD"}))


def documented() -> dict[str, set[tuple[str, str]]]:
    """The table of the page: | `METHOD path`, ... | services | ..."""
    page = (Path(__file__).parents[2] / "docs" / "operate" / "security.md").read_text()
    found: dict[str, set[tuple[str, str]]] = {service: set() for service in SERVICES}
    for routes, services in re.findall(r"^\| ((?:`[A-Z]+ /[^`]*`(?:, )?)+) \| ([a-z, ]+) \|", page, re.MULTILINE):
        for method, path in re.findall(r"`([A-Z]+) ([^`]+)`", routes):
            for service in SERVICES if services == "all" else services.split(", "):
                assert (method, path) not in found[service], f"{method} {path} has two rows"
                found[service].add((method, path))
    return found


@pytest.mark.parametrize("service", SERVICES)
def test_every_route_has_a_row_that_says_who_may(service: str) -> None:
    assert documented()[service] == set(routes_of(SERVICES[service](()).routes))


@pytest.mark.parametrize("service", SERVICES)
def test_every_route_asks_for_a_token_but_for_those_without_data(service: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    app = SERVICES[service]((tmp_path / "token",))
    routes = list(routes_of(app.routes))
    with AppClient(app) as client:
        for method, pattern in routes:
            path = re.sub(r"\{[^}]*\}", "name", pattern)
            without = client.request(method, path).status_code
            wrong = client.request(method, path, headers={"Authorization": "Bearer wrong"}).status_code
            right = client.request(method, path, headers={"Authorization": "Bearer secret"}).status_code
            closed = pattern not in OPEN
            assert ((without == 401), (wrong == 401)) == (closed, closed), f"{method} {path}: {without}, {wrong}"
            assert right not in (401, 403) and right < 500, f"{method} {path}: {right}"
        # Nor does a path that is nearly an open one get around it.
        for path in ("/healthz/", "//metrics", "/healthz/../metrics", "/metrics%2f", "/%6detrics", "/HEALTHZ"):
            answer = client.get(f"http://service{path}")
            assert answer.status_code == 401, path
