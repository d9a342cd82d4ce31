"""An allocation as the API server stores it: status.allocation of a claim, as JSON, and as every scheduler counts it.

Source: Allocate and createNodeSelector in structured/internal/stable/allocator_stable.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from msgspec import Raw

from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from profiles.gpu.dra.allocator import ChosenDevice
from profiles.gpu.dra.dra_objects import (
    AllocatedDevice,
    Allocation,
    ClassInfo,
    DeviceToleration,
    ResourceClaimInfo,
    WhereUsable,
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class MadeAllocation:
    """as_json: status.allocation, to be encoded by msgspec."""

    allocation: Allocation
    as_json: Json


def made_allocation(
    claim: ResourceClaimInfo, chosen: Sequence[ChosenDevice], classes: Mapping[str, ClassInfo], *, node: str, now: float
) -> MadeAllocation:
    """node: on which it was chosen; now: unix seconds."""
    terms = _node_terms(chosen, node)
    given = tuple(map(_allocated, chosen))
    allocation = Allocation(given, terms, float(int(now)))
    devices: Json = {}
    if chosen:
        devices["results"] = [_result(one, made) for one, made in zip(chosen, given, strict=True)]
    if config := _config(claim, chosen, classes):
        devices["config"] = config
    made: Json = {"devices": devices} if devices else {}
    if terms is not None:
        made["nodeSelector"] = {"nodeSelectorTerms": [_term_json(term) for term in terms]}
    made["allocationTimestamp"] = datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return MadeAllocation(allocation, made)


def _allocated(one: ChosenDevice) -> AllocatedDevice:
    return AllocatedDevice(
        one.wish.name,
        one.device.id,
        is_admin=bool(one.wish.admin),
        share="" if one.share is None else str(uuid4()),
        consumed=tuple(sorted((one.share or {}).items())),
        conditions=one.device.conditions,
        failure_conditions=one.device.failures,
    )


def _result(one: ChosenDevice, given: AllocatedDevice) -> Json:
    driver, pool, device = one.device.id
    made: Json = {"request": one.wish.name, "driver": driver, "pool": pool, "device": device}
    if one.wish.admin:
        made["adminAccess"] = True
    if one.wish.tolerations:
        made["tolerations"] = [_toleration_json(it) for it in one.wish.tolerations]
    if given.conditions:
        made["bindingConditions"] = list(given.conditions)
    if given.failure_conditions:
        made["bindingFailureConditions"] = list(given.failure_conditions)
    if given.share:
        made["shareID"] = given.share
    if given.consumed:
        made["consumedCapacity"] = {name: f"{amount:.9f}".rstrip("0").rstrip(".") for name, amount in given.consumed}
    return made


def _config(claim: ResourceClaimInfo, chosen: Sequence[ChosenDevice], classes: Mapping[str, ClassInfo]) -> list[Json]:
    """Of classes first, each once and for all requests that chose it; then the claim's own."""
    wish_of = {one.wish.name.partition("/")[0]: one.wish for one in chosen}
    asked_by: dict[str, list[str]] = {}
    for request in claim.spec.requests:
        wish = wish_of.get(request.name)
        if wish is not None:
            asked_by.setdefault(wish.device_class, []).append(wish.name)
    made = [
        {"source": "FromClass", "requests": names, "opaque": Raw(opaque)}
        for name, names in asked_by.items()
        for opaque in classes[name].config
    ]
    for one in claim.spec.config:
        meant = {name for wish in wish_of.values() for name in (wish.name, wish.name.partition("/")[0])}
        if not one.requests:
            made.append({"source": "FromClaim", "opaque": Raw(one.opaque)})
        elif meant.intersection(one.requests):
            made.append({"source": "FromClaim", "requests": list(one.requests), "opaque": Raw(one.opaque)})
    return made


def _node_terms(chosen: Sequence[ChosenDevice], node: str) -> tuple[NodeSelectorTerm, ...] | None:
    """From where all of the devices can be used; None = from everywhere."""
    expressions: dict[tuple[str, Operator, frozenset[str]], Requirement] = {}
    fields: dict[tuple[str, Operator, frozenset[str]], Requirement] = {}
    for one in chosen:
        where = _where(one)
        if where.node or one.device.binds:
            by_name = Requirement("metadata.name", Operator.IN, (node,))
            return (NodeSelectorTerm(fields=(by_name,)),)
        for term in where.terms or ():
            for found, requirements in ((fields, term.fields), (expressions, term.expressions)):
                for it in requirements:
                    found.setdefault((it.key, it.operator, frozenset(it.values)), it)
    if not expressions and not fields:
        return None
    return (NodeSelectorTerm(tuple(expressions.values()), tuple(fields.values())),)


def _where(one: ChosenDevice) -> WhereUsable:
    if one.device.where is not None:
        return one.device.where
    return next(it.where for it in one.pool.slices if any(device is one.device for device in it.devices))


def _toleration_json(one: DeviceToleration) -> Json:
    made: Json = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
    made = {name: value for name, value in made.items() if value}
    return made if one.seconds is None else made | {"tolerationSeconds": one.seconds}


def _term_json(term: NodeSelectorTerm) -> Json:
    named = {"matchExpressions": term.expressions, "matchFields": term.fields}
    return {name: [_requirement_json(one) for one in of] for name, of in named.items() if of}


def _requirement_json(one: Requirement) -> Json:
    made: Json = {"key": one.key, "operator": one.operator.value}
    return made | {"values": list(one.values)} if one.values else made
