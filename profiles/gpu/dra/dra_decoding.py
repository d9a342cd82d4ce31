"""JSON of resource.k8s.io/v1 (wire.py) -> what of it matters (objects.py), and where it is listed and watched."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Raw

from kube.decoding.constraint_decoding import node_selector_term
from kube.decoding.object_decoding import controller, created_at
from kube.decoding.watched_kinds import Watched, first_served
from kube.decoding.wire_base import NOTHING
from kube.decoding.wire_scheduling import NodeSelectorJson
from kube.objects.constraints import NodeSelectorTerm
from kube.objects.quantity import parse_quantity
from profiles.gpu.dra import dra_wire
from profiles.gpu.dra.capacity import CapacityPolicy
from profiles.gpu.dra.dra_objects import (
    AllocatedDevice,
    Allocation,
    AllocationMode,
    AttributeValue,
    ClaimConfig,
    ClaimSpec,
    ClassInfo,
    Constraint,
    Consumer,
    Device,
    DeviceAlternative,
    DeviceId,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    PoolId,
    ResourceClaimInfo,
    SliceInfo,
    TaintRule,
    Version,
    WhereUsable,
)
from profiles.gpu.dra.extended_resources import EXTENDED
from profiles.gpu.dra.unsupported import NODE_RESOURCES

GROUP: Final = "/apis/resource.k8s.io/v1"

_SLICE: Final = msgspec.json.Decoder(dra_wire.SliceJson)
_CLASS: Final = msgspec.json.Decoder(dra_wire.ClassJson)
_TAINT_RULE: Final = msgspec.json.Decoder(dra_wire.TaintRuleJson)
_CLAIM: Final = msgspec.json.Decoder(dra_wire.ResourceClaimJson)
_DEVICES: Final = msgspec.json.Decoder(dra_wire.DevicesJson | None)

_ANNOTATIONS: Final = msgspec.json.Decoder(dict[str, str | None])
_EXTENDED: Final = EXTENDED.encode()

_MODES: Final = {mode.value: mode for mode in AllocationMode}
_LONGEST_SHARED: Final = 65_536  # bytes of a spec that is kept for claims that say the same


def decode_claim(body: bytes | Raw) -> tuple[ResourceClaimInfo, str]:
    """A ResourceClaim, and its resourceVersion."""
    whole = _CLAIM.decode(body)
    metadata, status = whole.metadata, whole.status or dra_wire.ClaimStatus()
    spec = bytes(whole.spec.devices)
    version = metadata.resource_version or ""
    claim = ResourceClaimInfo(
        namespace=sys.intern(metadata.namespace or "default"),
        name=metadata.name,
        uid=metadata.uid or "",
        spec=_shared_spec(spec) if len(spec) <= _LONGEST_SHARED else _spec(spec),
        allocation=None if status.allocation is None else _allocation(status.allocation),
        consumers=tuple(
            Consumer(one.name, one.uid, one.resource, one.api_group or "") for one in status.reserved_for or ()
        ),
        finalizers=tuple(metadata.finalizers or ()),
        terminating=metadata.deletion_timestamp is not None,
        resource_version=version,
        extended_for=_extended_for(metadata),
        conditions={
            _device_id(one): frozenset(it.type for it in one.conditions or () if it.status == "True")
            for one in status.devices or ()
        },
    )
    return claim, version


def _extended_for(metadata: dra_wire.ClaimMetadata) -> str:
    piece = bytes(metadata.annotations)
    if _EXTENDED not in piece.replace(b"\\/", b"/") or _ANNOTATIONS.decode(piece).get(EXTENDED) != "true":
        return ""
    owner, uid = controller(metadata)
    return uid if owner.kind == "Pod" else ""


def _decode_slice(body: bytes | Raw) -> tuple[SliceInfo, str]:
    whole = _SLICE.decode(body)
    spec, version = whole.spec, whole.metadata.resource_version or ""
    pool = PoolId(sys.intern(spec.driver), sys.intern(spec.pool.name))
    found = SliceInfo(
        name=whole.metadata.name,
        pool=pool,
        generation=spec.pool.generation,
        n_slices=spec.pool.resource_slice_count,
        where=_where(spec),
        devices=tuple(_device(one, pool, spec) for one in spec.devices or ()),
        counters=tuple(
            (one.name, counter, parse_quantity(amount.value))
            for one in spec.shared_counters or ()
            for counter, amount in (one.counters or {}).items()
        ),
        resource_version=version,
    )
    return found, version


def _decode_class(body: bytes | Raw) -> tuple[ClassInfo, str]:
    whole = _CLASS.decode(body)
    spec, version = whole.spec or dra_wire.ClassSpec(), whole.metadata.resource_version or ""
    config = tuple(bytes(one.opaque) for one in spec.config or ())
    resource = sys.intern(spec.extended_resource_name or "")
    selectors, created = _selectors(spec.selectors), created_at(whole.metadata)
    return ClassInfo(whole.metadata.name, selectors, config, version, resource, created), version


def _decode_taint_rule(body: bytes | Raw) -> tuple[TaintRule, str]:
    whole = _TAINT_RULE.decode(body)
    selector, version = whole.spec.device_selector, whole.metadata.resource_version or ""
    named = selector or dra_wire.TaintSelectorJson()
    rule = TaintRule(
        whole.metadata.name, _taint(whole.spec.taint), named.driver, named.pool, named.device, selector is not None
    )
    return rule, version


# Optional: without the API nothing is claimed, and everything else goes on.
_CLAIMS, _SLICES, _CLASSES = (f"{GROUP}/{plural}" for plural in ("resourceclaims", "resourceslices", "deviceclasses"))
WATCHED_CLAIMS: Final = Watched("resourceclaims", "ResourceClaim", _CLAIMS, decode_claim, optional=True)
WATCHED_SLICES: Final = Watched("resourceslices", "ResourceSlice", _SLICES, _decode_slice, optional=True)
WATCHED_CLASSES: Final = Watched("deviceclasses", "DeviceClass", _CLASSES, _decode_class, optional=True)
# Kubernetes 1.37 serves v1, 1.36 what its administrator switches on.
WATCHED_TAINT_RULES: Final = first_served(
    Watched("devicetaintrules", "DeviceTaintRule", f"{GROUP}{suffix}/devicetaintrules", _decode_taint_rule)
    for suffix in ("", "beta2", "alpha3")
)


def _device(one: dra_wire.DeviceJson, pool: PoolId, of: dra_wire.SliceSpec) -> Device:
    return Device(
        id=DeviceId(pool.driver, pool.pool, one.name),
        attributes={sys.intern(name): _attribute(value) for name, value in (one.attributes or {}).items()},
        capacity={sys.intern(name): parse_quantity(it.value) for name, it in (one.capacity or {}).items()},
        taints=tuple(map(_taint, one.taints or ())),
        consumes=tuple(
            (of_set.counter_set, counter, parse_quantity(amount.value))
            for of_set in one.consumes_counters or ()
            for counter, amount in (of_set.counters or {}).items()
        ),
        where=_where(one) if of.per_device_node_selection else None,
        is_shareable=bool(one.allow_multiple_allocations),
        policies={name: _policy(it.request_policy) for name, it in (one.capacity or {}).items() if it.request_policy},
        conditions=tuple(one.binding_conditions or ()),
        failures=tuple(one.binding_failure_conditions or ()),
        binds=bool(one.binds_to_node),
        lacks=_lacks(one, of),
    )


def _policy(one: dra_wire.RequestPolicyJson) -> CapacityPolicy:
    bounds = one.valid_range or dra_wire.RangeJson()

    def amount(value: str | float | None) -> float | None:
        return None if value is None else parse_quantity(value)

    values = tuple(map(parse_quantity, one.valid_values or ()))
    return CapacityPolicy(amount(one.default), values, amount(bounds.min), amount(bounds.max), amount(bounds.step))


def _taint(one: dra_wire.DeviceTaintJson) -> DeviceTaint:
    return DeviceTaint(one.key, one.value or "", one.effect)


def _lacks(one: dra_wire.DeviceJson, of: dra_wire.SliceSpec) -> str:
    mapped = (bytes(one.node_allocatable_resources), bytes(one.node_allocatable_resource_mappings))
    if not set(mapped) <= set(_NOTHING):
        return NODE_RESOURCES
    if of.skip_node_operations:
        return "DRAOptionalNodeOperations"
    has_groups = any(consumed.compatibility_groups for consumed in one.consumes_counters or ())
    return "DRADeviceCompatibilityGroups" if has_groups else ""


_NOTHING: Final = (bytes(NOTHING), b"{}")


def _attribute(value: dra_wire.DeviceAttributeJson) -> AttributeValue:
    if value.integer is not None:
        return value.integer
    if value.boolean is not None:
        return value.boolean
    if value.text is not None:
        return sys.intern(value.text)
    return None if value.version is None else Version(value.version)


def _where(one: dra_wire.DeviceJson | dra_wire.SliceSpec) -> WhereUsable:
    return WhereUsable(sys.intern(one.node_name or ""), _terms(one.node_selector), bool(one.all_nodes))


def _terms(selector: NodeSelectorJson | None) -> tuple[NodeSelectorTerm, ...] | None:
    return None if selector is None else tuple(map(node_selector_term, selector.node_selector_terms or ()))


def _selectors(selectors: Iterable[dra_wire.DeviceSelectorJson] | None) -> tuple[str | None, ...]:
    return tuple(None if one.cel is None else sys.intern(one.cel.expression) for one in selectors or ())


@lru_cache(maxsize=4096)
def _shared_spec(piece: bytes) -> ClaimSpec:
    return _spec(piece)


def _spec(piece: bytes) -> ClaimSpec:
    spec = _DEVICES.decode(piece) or dra_wire.DevicesJson()
    return ClaimSpec(
        requests=tuple(map(_request, spec.requests or ())),
        constraints=tuple(
            Constraint(
                tuple(one.requests or ()),
                one.match_attribute or one.distinct_attribute or "",
                is_distinct=not one.match_attribute,
            )
            for one in spec.constraints or ()
        ),
        config=tuple(ClaimConfig(tuple(one.requests or ()), bytes(one.opaque)) for one in spec.config or ()),
    )


def _request(one: dra_wire.RequestJson) -> DeviceRequest:
    if one.exactly is not None:
        return DeviceRequest(one.name, (_wish(one.exactly, one.name),))
    wishes = tuple(_wish(wish, f"{one.name}/{wish.name}") for wish in one.first_available or ())
    return DeviceRequest(one.name, wishes, is_list=True)


def _wish(one: dra_wire.WishJson, name: str) -> DeviceAlternative:
    return DeviceAlternative(
        name=name,
        device_class=one.device_class_name,
        selectors=_selectors(one.selectors),
        mode=_MODES.get(one.allocation_mode or AllocationMode.EXACT_COUNT.value),
        count=1 if one.count is None else one.count,
        admin=one.admin_access,
        tolerations=tuple(map(_toleration, one.tolerations or ())),
        capacity=_amounts(one.capacity.requests if one.capacity is not None else None),
        lacks="" if bytes(one.derived_attributes) in (*_NOTHING, b"[]") else "DRADerivedAttributes",
    )


def _toleration(one: dra_wire.DeviceTolerationJson) -> DeviceToleration:
    seconds = one.toleration_seconds
    return DeviceToleration(one.key or "", one.operator or "Equal", one.value or "", one.effect or "", seconds)


def _allocation(one: dra_wire.AllocationJson) -> Allocation:
    results = (one.devices.results if one.devices is not None else None) or ()
    return Allocation(
        devices=tuple(
            AllocatedDevice(
                request=it.request,
                id=_device_id(it),
                is_admin=bool(it.admin_access),
                share=it.share_id or "",
                consumed=_amounts(it.consumed_capacity),
                conditions=tuple(it.binding_conditions or ()),
                failure_conditions=tuple(it.binding_failure_conditions or ()),
                lacks="DRAOptionalNodeOperations" if it.skip_node_operations else "",
            )
            for it in results
        ),
        node_terms=_terms(one.node_selector),
        at=None if one.allocation_timestamp is None else one.allocation_timestamp.timestamp(),
    )


def _device_id(one: dra_wire.ResultJson | dra_wire.DeviceStatusJson) -> DeviceId:
    return DeviceId(sys.intern(one.driver), sys.intern(one.pool), one.device)


def _amounts(amounts: Mapping[str, str | float] | None) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((sys.intern(name), parse_quantity(amount)) for name, amount in (amounts or {}).items()))
