"""The structures of the protocol, from staging/src/k8s.io/kube-scheduler/extender/v1/types.go.

They carry no JSON tags in Go, so requests arrive with capitalised keys around ordinary lower-case objects, and lists
and maps that were never made arrive as null. Unknown keys are skipped, as Go does. Go reads replies in any case.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType, field

NOTHING = Raw(b"null")


def _nothing() -> Raw:
    return NOTHING


class ExtenderArgs(Struct, rename="pascal", gc=False):
    """Body of /filter and /prioritize: a pod, and the nodes it might go to, by name or as whole objects."""

    pod: Raw = field(default_factory=_nothing)
    nodes: Raw = field(default_factory=_nothing)
    node_names: list[str] | None = None


class NodeList(Struct, gc=False):
    """A NodeList of the API; its items are handed back as they came."""

    items: list[Raw] | None = None


class _Named(Struct, gc=False):
    name: str


class NodeItem(Struct, gc=False):
    """What of a whole node is read here: its name."""

    metadata: _Named


class ExtenderFilterResult(Struct, rename="pascal", gc=False):
    """Reply of /filter. Without NodeNames and Nodes kube-scheduler takes it that no node fits."""

    node_names: list[str] | None = None
    nodes: NodeList | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


class HostPriority(Struct, rename="pascal", gc=False):
    """One entry of the reply of /prioritize, a bare list. Score is an int64: a fraction breaks the whole reply."""

    host: str
    score: int


class MetaPod(Struct, gc=False):
    """A pod by its UID."""

    uid: str = field(name="UID")


class MetaVictims(Struct, gc=False):
    """Pods to be evicted from one node, by UID."""

    pods: list[MetaPod | None] | None = field(name="Pods", default=None)
    pdb_violations: int = field(name="NumPDBViolations", default=0)


class _Identified(Struct, gc=False):
    uid: str


class VictimPod(Struct, gc=False):
    """What of a whole pod that would be evicted is read here: its UID."""

    metadata: _Identified


class VictimsOfNode(Struct, gc=False):
    """Pods to be evicted from one node, as whole objects (nodeCacheCapable: false)."""

    pods: list[VictimPod | None] | None = field(name="Pods", default=None)
    pdb_violations: int = field(name="NumPDBViolations", default=0)


class ExtenderPreemptionArgs(Struct, rename="pascal", gc=False):
    """Body of /preempt: one of the two maps is null."""

    pod: Raw = field(default_factory=_nothing)
    node_name_to_victims: dict[str, VictimsOfNode | None] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims | None] | None = None


class ExtenderPreemptionResult(Struct, rename="pascal", gc=False):
    """Reply of /preempt. kube-scheduler takes an empty list of victims for an error: such nodes are left out."""

    node_name_to_meta_victims: dict[str, MetaVictims]


class ExtenderBindingArgs(Struct, rename="pascal", gc=False):
    """Body of /bind."""

    pod_name: str | UnsetType = UNSET
    pod_namespace: str = ""
    pod_uid: str = field(name="PodUID", default="")
    node: str = ""


class ExtenderBindingResult(Struct, rename="pascal", gc=False):
    """Reply of /bind; an empty error is success."""

    error: str = ""


class ExtenderErrorBody(Struct, rename="pascal", gc=False):
    """Every answer that is not 200, which kube-scheduler takes for an error without reading it."""

    error: str
