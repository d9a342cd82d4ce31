"""GET /v1/tenants field by field, and the same as a page: GET /tenants. The OpenAPI document is made from these
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from msgspec import Meta, Struct
from starlette.responses import Response

from base.html_report import html_report
from scorer.service.routes.page_and_report import REPORT_POLICY
from scorer.service.scorer_openapi import answer
from scorer.service.scorer_state import TheService
from serving.json_answers import json_response
from tenants.quota_amounts import in_short
from tenants.tenant_report import ResourceReport, TenantReport, TenantsReport

_AMOUNT = "Cores, bytes, bytes a second, cards or counts."

MOST_HOURS: Final = 24
Hours = Annotated[int, Query(ge=0, le=MOST_HOURS, description="Hours of needs, from the one under way on.")]
_HOURS_SHOWN: Final = 12


class TenantResource(Struct, frozen=True):
    """One resource of a tenant, in base units."""

    resource: str
    min: Annotated[float, Meta(description=_AMOUNT)]
    max: Annotated[float | None, Meta(description="null = no bound.")]
    used: float
    waiting: Annotated[float, Meta(description="That its pods wait for.")]
    borrowed: Annotated[float, Meta(description="Used beyond min.")]
    lent: Annotated[float, Meta(description="Of its idle min, what others use now.")]
    owed: Annotated[float, Meta(description="What others would have to return if it wanted all of its min now.")]
    may_borrow: Annotated[float, Meta(description="Largest pod beyond min that would be admitted now, for an hour.")]
    expected: Annotated[Sequence[float], Meta(description="Need by hour, this one first; empty = no forecast.")]
    will_lend: Annotated[Sequence[float], Meta(description="Idle min by hour that is lent; empty = no forecast.")]


class Tenant(Struct, frozen=True):
    """One ElasticQuota and what its pods have."""

    tenant: str
    namespace: str
    quota: Annotated[str, Meta(description="Name of the ElasticQuota.")]
    parent: Annotated[str | None, Meta(description="Tenant above it; null = it stands at the top.")]
    weight: float
    lends: bool
    pods: Annotated[int, Meta(description="Pods of its own that have a node.")]
    waiting_pods: Annotated[int, Meta(description="Pods of its own that wait.")]
    resources: Sequence[TenantResource]


class Tenants(Struct, frozen=True):
    """All tenants, parents before their children."""

    made: datetime
    from_hour: Annotated[datetime | None, Meta(description="When the first hour of the curves began; null = none.")]
    problems: Annotated[Sequence[str], Meta(description="What of the ElasticQuotas is not as it should be.")]
    tenants: Sequence[Tenant]


def tenants_answer(report: TenantsReport, namespace: str | None = None) -> Tenants:
    """Return the answer. namespace: only of tenants with this name or namespace; None = of all."""
    return Tenants(
        made=datetime.fromtimestamp(report.made, UTC),
        from_hour=None if report.from_hour is None else datetime.fromtimestamp(report.from_hour, UTC),
        problems=report.problems,
        tenants=[_tenant(one) for one in report.tenants if namespace in (None, one.namespace, one.name)],
    )


def _tenant(one: TenantReport) -> Tenant:
    return Tenant(
        tenant=one.name,
        namespace=one.namespace,
        quota=one.quota,
        parent=one.parent or None,
        weight=one.weight,
        lends=one.lends,
        pods=one.running,
        waiting_pods=one.waiting,
        resources=[_resource(resource) for resource in one.resources],
    )


def _resource(one: ResourceReport) -> TenantResource:
    return TenantResource(
        resource=one.resource,
        min=one.least,
        max=one.most,
        used=one.used,
        waiting=one.waiting,
        borrowed=one.borrowed,
        lent=one.lent,
        owed=one.owed,
        may_borrow=one.may_borrow,
        expected=one.expected,
        will_lend=one.will_lend,
    )


Namespace = Annotated[str | None, Query(description="Only tenants of this name or namespace.")]


def tenants_router(report: Callable[[int], TenantsReport]) -> APIRouter:
    """Return both routes. report: called with the number of hours, in any thread"""
    router = APIRouter(tags=["tenants"])

    @router.get("/v1/tenants", responses=answer("Tenants", 422))
    async def tenants(service: TheService, hours: Hours = MOST_HOURS, namespace: Namespace = None) -> Response:
        """What each tenant has, waits for, lends, owes and may still borrow, and what it is expected to need by
        hour."""
        return await service.in_thread(lambda: json_response(tenants_answer(report(hours), namespace)))

    @router.get("/tenants", include_in_schema=False)
    async def page(service: TheService) -> Response:
        """The same for people."""

        def made() -> Response:
            text = tenants_page(tenants_answer(report(_HOURS_SHOWN)))
            return Response(text, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

        return await service.in_thread(made)

    return router


def tenants_page(found: Tenants) -> str:
    """Return the page of all tenants."""
    hours = [] if found.from_hour is None else [found.from_hour.timestamp() + 3600 * n for n in range(_HOURS_SHOWN)]
    return html_report(
        "tenants/page.html.j2",
        title="Tenants",
        found=found,
        hours=[f"{datetime.fromtimestamp(one, UTC):%H:%M}" for one in hours],
        in_short=in_short,
    )
