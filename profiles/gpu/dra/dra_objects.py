"""ResourceSlices, DeviceClasses and ResourceClaims: what of them matters to who gets which device.

Source: staging/src/k8s.io/api/resource/v1/types.go of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from kube.objects.constraints import NodeSelectorTerm
from profiles.gpu.dra.capacity import CapacityPolicy

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
MOST_CONSUMERS: Final = 256
"""ResourceClaimReservedForMaxSize."""
MOST_RESULTS: Final = 32
"""AllocationResultsMaxSize, of one claim."""

ClaimKey = tuple[str, str]
"""Namespace and name."""


class PoolId(NamedTuple):
    """Devices of one driver that are described together."""

    driver: str
    pool: str


class DeviceId(NamedTuple):
    """What identifies a device in the cluster."""

    driver: str
    pool: str
    device: str

    @property
    def pool_id(self) -> PoolId:
        return PoolId(self.driver, self.pool)


@dataclass(frozen=True, slots=True)
class Version:
    """An attribute that is a semantic version."""

    text: str


AttributeValue = str | int | bool | Version | None
"""None = of a kind that is not known, such as lists (alpha in 1.36)."""


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """taints[] of a device."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule: a taint for all devices that are named. None = any driver, pool or device.

    selects : False = it has no selector, which means no device
    """

    name: str
    taint: DeviceTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selects: bool = True

    def concerns(self, device: DeviceId) -> bool:
        """Whether the device gets the taint."""
        wanted = (self.driver, self.pool, self.device)
        return self.selects and all(one is None or one == has for one, has in zip(wanted, device, strict=True))


@dataclass(frozen=True, slots=True)
class DeviceToleration:
    """tolerations[] of a request. operator: Equal or Exists; seconds: None = for good."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class WhereUsable:
    """Of a slice, or of a device where its slice leaves that to devices: from one node, from some, from all.

    node  : name; '' = not one node
    terms : of a node selector; None = no selector
    """

    node: str = ""
    terms: tuple[NodeSelectorTerm, ...] | None = None
    all_nodes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A device of a slice.

    attributes   : by qualified name, the driver's own without a domain
    capacity     : by qualified name, in base units
    consumes     : of the counter sets of its pool: (set, counter, amount)
    where        : None = as its slice says
    policies     : what shares of a capacity are allowed, by its name; of those that say so
    is_shareable : several requests may have a share of it
    conditions   : it may be used once they are true
    failures     : conditions that say it never will be
    binds        : who has it can be used from this one node only
    lacks        : what it needs that is not done here, as a feature gate names it; '' = nothing
    known        : expressions, and whether they select it or what is wrong; kept as long as the device
    """

    id: DeviceId
    attributes: Mapping[str, AttributeValue]
    capacity: Mapping[str, float]
    taints: tuple[DeviceTaint, ...] = ()
    consumes: tuple[tuple[str, str, float], ...] = ()
    where: WhereUsable | None = None
    is_shareable: bool = False
    policies: Mapping[str, CapacityPolicy] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    binds: bool = False
    lacks: str = ""
    known: dict[str, bool | str] = field(default_factory=dict, repr=False)

    def attribute(self, name: str) -> AttributeValue:
        """By its fully qualified name; None = it has no such attribute (lookupAttribute)."""
        if name in self.attributes:
            return self.attributes[name]
        domain, _, own = name.partition("/")
        return self.attributes.get(own) if domain == self.id.driver else None


@dataclass(frozen=True, slots=True)
class SliceInfo:
    """A ResourceSlice.

    n_slices : of its pool in this generation, itself included
    counters : sharedCounters by name of the set and of the counter
    """

    name: str
    pool: PoolId
    generation: int
    n_slices: int
    where: WhereUsable
    devices: tuple[Device, ...]
    counters: tuple[tuple[str, str, float], ...] = ()
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class ClassInfo:
    """A DeviceClass.

    selectors : CEL, None = of a kind that is not known
    config    : `opaque` as the object has it
    resource  : extended resource by which pods may request its devices; '' = none but the one that its name makes
    created   : unix seconds
    """

    name: str
    selectors: tuple[str | None, ...] = ()
    config: tuple[bytes, ...] = ()
    resource_version: str = ""
    resource: str = ""
    created: float = 0.0


class AllocationMode(Enum):
    """allocationMode."""

    EXACT_COUNT = "ExactCount"
    ALL = "All"


@dataclass(frozen=True, slots=True)
class DeviceAlternative:
    """One way to satisfy a request: `exactly`, or an entry of `firstAvailable`.

    name         : as results and configurations refer to it: request, or request/subrequest
    mode         : None = one that is not known
    count        : with EXACT_COUNT
    admin        : adminAccess; None = it does not say
    capacity     : what it wants of a device, by name
    lacks        : what it asks for that is not done here, as a feature gate names it; '' = nothing
    """

    name: str
    device_class: str
    selectors: tuple[str | None, ...] = ()
    mode: AllocationMode | None = AllocationMode.EXACT_COUNT
    count: int = 1
    admin: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: tuple[tuple[str, float], ...] = ()
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """requests[] of a claim. wishes: the first that can be met; none = of a kind that is not known."""

    name: str
    wishes: tuple[DeviceAlternative, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Constraint:
    """constraints[]. requests: none = all; attribute: '' = of a kind that is not known; is_distinct: else equal."""

    requests: tuple[str, ...]
    attribute: str
    is_distinct: bool = False

    def concerns(self, request: str, wish: str) -> bool:
        """Whether a device for that request counts, by the names of both."""
        return not self.requests or request in self.requests or wish in self.requests


@dataclass(frozen=True, slots=True)
class ClaimConfig:
    """config[] of a claim."""

    requests: tuple[str, ...]
    opaque: bytes


@dataclass(frozen=True, slots=True, eq=False)
class ClaimSpec:
    """spec.devices; claims that say the same, byte for byte, share one object."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    config: tuple[ClaimConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """status.allocation.devices.results[].

    share    : identity of a share of the device; '' = it has all of the device
    consumed : of the device's capacity, by name; sorted
    lacks    : what is not done here, as a feature gate names it; '' = nothing
    """

    request: str
    id: DeviceId
    is_admin: bool = False
    share: str = ""
    consumed: tuple[tuple[str, float], ...] = ()
    conditions: tuple[str, ...] = ()
    failure_conditions: tuple[str, ...] = ()
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Allocation:
    """status.allocation. node_terms: of its node selector; None = it can be used from every node; at: unix seconds."""

    devices: tuple[AllocatedDevice, ...]
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Consumer:
    """status.reservedFor[]."""

    name: str
    uid: str
    resource: str = "pods"
    group: str = ""


@dataclass(frozen=True, slots=True)
class ResourceClaimInfo:
    """A ResourceClaim.

    allocation   : None = it has not been allocated
    conditions   : types of those that are true, by device
    extended_for : UID of the pod for whose extended resources a scheduler made it; '' = it is another claim
    """

    namespace: str
    name: str
    uid: str
    spec: ClaimSpec
    allocation: Allocation | None = None
    consumers: tuple[Consumer, ...] = ()
    finalizers: tuple[str, ...] = ()
    terminating: bool = False
    resource_version: str = ""
    extended_for: str = ""
    conditions: Mapping[DeviceId, frozenset[str]] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> ClaimKey:
        return self.namespace, self.name

    def is_reserved_for(self, uid: str) -> bool:
        """Whether the pod is among those that may use it."""
        return any(one.uid == uid for one in self.consumers)
