"""Typed structures of resource.k8s.io/v1 as the API server sends them; only what is read."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from kube.decoding.wire import Metadata
from kube.decoding.wire_base import NOTHING, Text, Time, Wire
from kube.decoding.wire_scheduling import NodeSelectorJson

_Amount = str | int | float


class DeviceAttributeJson(Wire):
    """Exactly one is set."""

    integer: int | None = msgspec.field(default=None, name="int")
    boolean: bool | None = msgspec.field(default=None, name="bool")
    text: Text | None = msgspec.field(default=None, name="string")
    version: Text | None = None


class RangeJson(Wire):
    min: _Amount | None = None
    max: _Amount | None = None
    step: _Amount | None = None


class RequestPolicyJson(Wire):
    """requestPolicy of a capacity."""

    default: _Amount | None = None
    valid_values: list[_Amount] | None = None
    valid_range: RangeJson | None = None


class DeviceCapacityJson(Wire):
    value: _Amount
    request_policy: RequestPolicyJson | None = None


class CounterJson(Wire):
    value: _Amount


class ConsumptionJson(Wire):
    counter_set: Text
    counters: dict[str, CounterJson] | None = None
    compatibility_groups: list[Text] | None = None


class CounterSetJson(Wire):
    name: Text
    counters: dict[str, CounterJson] | None = None


class DeviceTaintJson(Wire):
    key: Text
    value: Text | None = None
    effect: Text = ""


class TaintSelectorJson(Wire):
    driver: Text | None = None
    pool: Text | None = None
    device: Text | None = None


class TaintRuleSpec(Wire):
    taint: DeviceTaintJson
    device_selector: TaintSelectorJson | None = None


class TaintRuleJson(Wire):
    """A DeviceTaintRule."""

    metadata: Metadata
    spec: TaintRuleSpec


class DeviceJson(Wire):
    """spec.devices[] of a slice."""

    name: Text
    attributes: dict[str, DeviceAttributeJson] | None = None
    capacity: dict[str, DeviceCapacityJson] | None = None
    consumes_counters: list[ConsumptionJson] | None = None
    node_name: Text | None = None
    node_selector: NodeSelectorJson | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaintJson] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[Text] | None = None
    binding_failure_conditions: list[Text] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: Raw = NOTHING
    node_allocatable_resource_mappings: Raw = NOTHING  # its name in 1.36


class PoolJson(Wire):
    name: Text
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Wire):
    driver: Text
    pool: PoolJson
    node_name: Text | None = None
    node_selector: NodeSelectorJson | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[DeviceJson] | None = None
    shared_counters: list[CounterSetJson] | None = None
    skip_node_operations: list[Text] | None = None


class SliceJson(Wire):
    """A ResourceSlice."""

    metadata: Metadata
    spec: SliceSpec


class CelJson(Wire):
    expression: str


class DeviceSelectorJson(Wire):
    cel: CelJson | None = None


class ConfigJson(Wire):
    requests: list[Text] | None = None
    opaque: Raw = NOTHING


class ClassSpec(Wire):
    selectors: list[DeviceSelectorJson] | None = None
    config: list[ConfigJson] | None = None
    extended_resource_name: Text | None = None


class ClassJson(Wire):
    """A DeviceClass."""

    metadata: Metadata
    spec: ClassSpec | None = None


class DeviceTolerationJson(Wire, omit_defaults=True):
    """tolerations[] of a request, read and written."""

    key: Text | None = None
    operator: Text | None = None
    value: Text | None = None
    effect: Text | None = None
    toleration_seconds: int | None = None


class RequirementsJson(Wire):
    """capacity of a request."""

    requests: dict[str, _Amount] | None = None


class WishJson(Wire):
    """exactly, or an entry of firstAvailable."""

    name: Text = ""
    device_class_name: Text = ""
    selectors: list[DeviceSelectorJson] | None = None
    allocation_mode: Text | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[DeviceTolerationJson] | None = None
    capacity: RequirementsJson | None = None
    derived_attributes: Raw = NOTHING


class RequestJson(Wire):
    name: Text
    exactly: WishJson | None = None
    first_available: list[WishJson] | None = None


class ConstraintJson(Wire):
    requests: list[Text] | None = None
    match_attribute: Text | None = None
    distinct_attribute: Text | None = None


class DevicesJson(Wire):
    """spec.devices of a claim."""

    requests: list[RequestJson] | None = None
    constraints: list[ConstraintJson] | None = None
    config: list[ConfigJson] | None = None


class ResourceClaimSpecJson(Wire):
    devices: Raw = NOTHING


class ResultJson(Wire):
    request: Text
    driver: Text
    pool: Text
    device: Text
    admin_access: bool | None = None
    binding_conditions: list[Text] | None = None
    binding_failure_conditions: list[Text] | None = None
    share_id: Text | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, _Amount] | None = None
    skip_node_operations: list[Text] | None = None


class ResultsJson(Wire):
    results: list[ResultJson] | None = None


class AllocationJson(Wire):
    devices: ResultsJson | None = None
    node_selector: NodeSelectorJson | None = None
    allocation_timestamp: Time | None = None


class ConditionJson(Wire):
    type: Text
    status: Text = ""


class DeviceStatusJson(Wire):
    """status.devices[], which drivers write."""

    driver: Text
    pool: Text
    device: Text
    conditions: list[ConditionJson] | None = None


class ConsumerJson(Wire):
    name: Text
    uid: Text
    resource: Text = "pods"
    api_group: Text | None = None


class ClaimStatus(Wire):
    allocation: AllocationJson | None = None
    reserved_for: list[ConsumerJson] | None = None
    devices: list[DeviceStatusJson] | None = None


class ClaimMetadata(Metadata):
    """metadata of a claim."""

    finalizers: list[Text] | None = None


class ResourceClaimJson(Wire):
    """A ResourceClaim."""

    metadata: ClaimMetadata
    spec: ResourceClaimSpecJson
    status: ClaimStatus | None = None
