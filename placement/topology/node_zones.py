"""What a NodeResourceTopology says of a node: its NUMA zones, what they have left, how its kubelet hands out CPUs, and
which of its cards are near each other.

https://github.com/k8stopologyawareschedwg/noderesourcetopology-api, pkg/apis/topology/v1alpha2/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Groups = tuple[tuple[int, ...], ...]
"""Devices of a node by index, those near each other together; each in one group at most."""


class Policy(Enum):
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
    policy: Policy = Policy.NONE
    scope: Scope = Scope.CONTAINER
    zones: tuple[NumaZone, ...] = ()
    layout: CardLayout = NO_LAYOUT
    cpus: CpuManager = CpuManager()
