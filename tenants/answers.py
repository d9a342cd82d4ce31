"""GET /v1/tenants, field by field; the OpenAPI document is made from these classes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Struct

from tenants.report import ResourceReport, TenantReport, TenantsReport

_AMOUNT = "Cores, bytes, bytes a second, cards or counts."


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
