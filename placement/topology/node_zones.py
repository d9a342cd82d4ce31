"""What a NodeResourceTopology says of a node: its NUMA zones, what they have left, its CPU manager, and which of its
cards are near each other.

https://github.com/k8stopologyawareschedwg/noderesourcetopology-api, pkg/apis/topology/v1alpha2/types.go

    attribute threadsPerCore           "2"                                   ours
    attribute cpuManagerPolicy         "static", "none"                      named after the kubelet's fields, as
    attribute cpuManagerPolicyOptions  "full-pcpus-only=true,..."            topologyManagerPolicy is; written as in the
    attribute memoryManagerPolicy      "Static", "None"                      kubelet's flags
    annotation kubelet.koordinator.sh/cpu-manager-policy                     of Koordinator's koordlet: policy, options
    annotation node.koordinator.sh/cpu-topology                              of koordlet: core and socket of each CPU
    label feature.node.kubernetes.io/cpu-hardware_multithreading             of Node Feature Discovery

An attribute goes before an annotation, and both before the label. The label says that there are several threads per
core, not how many: it counts on amd64 only, where there are two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

import msgspec

from base.errors import InputError
from kube.decoding.watched_kinds import REFUSED
from kube.decoding.wire_base import Wire

Groups = tuple[tuple[int, ...], ...]
"""Devices of a node by index, those near each other together; each in one group at most."""

THREADS_PER_CORE: Final = "threadsPerCore"
CPU_POLICY: Final = "cpuManagerPolicy"
CPU_OPTIONS: Final = "cpuManagerPolicyOptions"
MEMORY_POLICY: Final = "memoryManagerPolicy"
KOORDINATOR_POLICY: Final = "kubelet.koordinator.sh/cpu-manager-policy"
KOORDINATOR_CPUS: Final = "node.koordinator.sh/cpu-topology"
MULTITHREADING: Final = "feature.node.kubernetes.io/cpu-hardware_multithreading"
_ARCH: Final = "kubernetes.io/arch"

_MOST_THREADS: Final = 8
"""POWER has the most: SMT8."""

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""As the kubelet reads options (strconv.ParseBool)."""


class TopologyManagerPolicy(Enum):
    """topologyManagerPolicy of the kubelet
    (https://kubernetes.io/docs/tasks/administer-cluster/topology-manager/)."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Scope(Enum):
    """topologyManagerScope: whether containers are aligned one by one, or the pod as a whole."""

    CONTAINER = "container"
    POD = "pod"


@dataclass(frozen=True, slots=True)
class CpuManager:
    """How the kubelet hands out CPUs and memory: its cpuManagerPolicy, cpuManagerPolicyOptions and memoryManagerPolicy
    (https://kubernetes.io/docs/concepts/policy/node-resource-managers/). What no object states has these defaults.

    pins             : the policy is not known to be `none`
    aligns_memory    : the memory manager's policy is not known to be `None`
    full_cores       : option full-pcpus-only: whole physical cores, or the pod fails with SMTAlignmentError
    spreads_threads  : option distribute-cpus-across-cores: it takes one thread of each core first
    align_by_socket  : option align-by-socket: the zones of one socket count as near each other
    threads_per_core : CPUs of one physical core; 0 = not stated
    """

    pins: bool = True
    aligns_memory: bool = True
    full_cores: bool = False
    spreads_threads: bool = False
    align_by_socket: bool = False
    threads_per_core: int = 0


@dataclass(frozen=True, slots=True)
class NumaZone:
    """A zone of type Node.

    number    : of the NUMA node
    available : whole units left by Kubernetes resource name, as the node published them
    costs     : distance by number of another zone, 10 = itself, as the firmware's tables (ACPI SLIT) have it
    total     : whole units by which the kubelet counts the zones that a request needs at least; at least `available`
    socket    : id of its socket; '' = not stated
    """

    number: int
    available: Mapping[str, int]
    costs: Mapping[int, int]
    total: Mapping[str, int] = field(default_factory=dict)
    socket: str = ""


@dataclass(frozen=True, slots=True)
class CardLayout:
    """Which cards are near each other.

    nvlink : cards joined by NVLink; none = unknown
    numa   : cards by NUMA zone, in the order of `zones`; none = unknown
    zones  : numbers of these NUMA zones
    """

    nvlink: Groups = ()
    numa: Groups = ()
    zones: tuple[int, ...] = ()

    @property
    def levels(self) -> tuple[Groups, ...]:
        """Those that are known, the one that matters more first: a link is several times as fast as the way between
        sockets, whatever zone its cards are in."""
        return tuple(groups for groups in (self.nvlink, self.numa) if groups)


NO_LAYOUT = CardLayout()


@dataclass(frozen=True, slots=True)
class NodeZones:
    """One object. zones: by number."""

    node: str
    policy: TopologyManagerPolicy = TopologyManagerPolicy.NONE
    scope: Scope = Scope.CONTAINER
    zones: tuple[NumaZone, ...] = ()
    layout: CardLayout = NO_LAYOUT
    cpus: CpuManager = CpuManager()


T = TypeVar("T")


class CpuManagerPolicyJson(Wire):
    """Koordinator's KubeletCPUManagerPolicy (apis/extension/resource.go there)."""

    policy: str = ""
    options: dict[str, str] = msgspec.field(default_factory=dict)


class CpuJson(Wire):
    """A CPU of Koordinator's CPUTopology."""

    core: int
    socket: int
    node: int


class CpusJson(Wire):
    """Koordinator's CPUTopology."""

    detail: list[CpuJson] = msgspec.field(default_factory=list)


_POLICY: Final = msgspec.json.Decoder(CpuManagerPolicyJson)
_CPUS: Final = msgspec.json.Decoder(CpusJson)


def cpu_manager(attributes: Mapping[str, str], annotations: Mapping[str, str | None]) -> CpuManager:
    """Of one object. Raises InputError."""
    policy, on = _policy(attributes, annotations)
    return CpuManager(
        pins=policy != "none",
        aligns_memory=attributes.get(MEMORY_POLICY) != "None",
        full_cores="full-pcpus-only" in on,
        spreads_threads="distribute-cpus-across-cores" in on,
        align_by_socket="align-by-socket" in on,
        threads_per_core=_threads(attributes, annotations),
    )


def sockets_of(annotations: Mapping[str, str | None]) -> Mapping[int, str]:
    """Socket by number of a NUMA node, as koordlet found them. Raises InputError."""
    return {one.node: str(one.socket) for one in _cpus(annotations)}


def labelled_threads(labels: Mapping[str, str]) -> int:
    """CPUs of a physical core by the labels of a node; 0 = they do not say."""
    several = labels.get(MULTITHREADING)
    if several == "false":
        return 1
    return 2 if several == "true" and labels.get(_ARCH) == "amd64" else 0


def _policy(attributes: Mapping[str, str], annotations: Mapping[str, str | None]) -> tuple[str, frozenset[str]]:
    """The policy, '' = not stated, and which options are on."""
    said = annotations.get(KOORDINATOR_POLICY)
    koordinator = CpuManagerPolicyJson() if not said else _decoded(_POLICY, KOORDINATOR_POLICY, said)
    policy, options = attributes.get(CPU_POLICY, koordinator.policy), koordinator.options
    if (text := attributes.get(CPU_OPTIONS)) is not None:
        pairs = [pair.partition("=") for pair in map(str.strip, text.split(",")) if pair]
        if not all(name and equals for name, equals, _ in pairs):
            raise InputError(f'attribute {CPU_OPTIONS} is {text[:60]!r}: it must be such as "full-pcpus-only=true"')
        options = {name.strip(): value.strip() for name, _, value in pairs}
    return policy, frozenset(name for name, value in options.items() if value in _TRUE)


def _threads(attributes: Mapping[str, str], annotations: Mapping[str, str | None]) -> int:
    text = attributes.get(THREADS_PER_CORE)
    if text is None:
        return max(Counter((one.socket, one.core) for one in _cpus(annotations)).values(), default=0)
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= _MOST_THREADS):
        raise InputError(
            f"attribute {THREADS_PER_CORE} is {text[:60]!r}: it must be a whole number from 1 to {_MOST_THREADS}"
        )
    return int(text)


def _cpus(annotations: Mapping[str, str | None]) -> list[CpuJson]:
    said = annotations.get(KOORDINATOR_CPUS)
    return _decoded(_CPUS, KOORDINATOR_CPUS, said).detail if said else []


def _decoded(decoder: msgspec.json.Decoder[T], name: str, text: str) -> T:
    try:
        return decoder.decode(text)
    except REFUSED as error:
        raise InputError(f"annotation {name} cannot be read: {error}") from error
