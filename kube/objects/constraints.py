"""Where a pod may go, as its spec says it: the API's own words as hashable values.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#scheduling. What the API server
would have filled in is filled in when these are made (constraint_decoding.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Operator(Enum):
    """Of a requirement. GT and LT compare whole numbers and are for nodes only."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry of matchExpressions or matchFields."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none = everything matches. matchLabels are requirements with one value, in front."""

    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """All of it must hold; a term without any requirement matches nothing."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PreferredNodeTerm:
    """preferredDuringSchedulingIgnoredDuringExecution of node affinity; weight 1 to 100."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """A term of pod affinity or anti-affinity.

    selector           : of pods, matchLabelKeys and mismatchLabelKeys merged in; None = no pod
    namespaces         : by name; the pod's own is here if the term says nothing of namespaces
    namespace_selector : further namespaces by label; None = no further
    """

    selector: LabelSelector | None
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class PreferredPodTerm:
    """preferredDuringSchedulingIgnoredDuringExecution of pod (anti-)affinity; weight 1 to 100."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """spec.topologySpreadConstraints[]; matchLabelKeys are merged into the selector.

    hard                : whenUnsatisfiable is DoNotSchedule
    honor_node_affinity : nodes that the pod's node affinity leaves out do not count
    honor_node_taints   : nodes with taints the pod does not tolerate do not count
    """

    max_skew: int
    topology_key: str
    hard: bool
    selector: LabelSelector | None
    min_domains: int = 1
    honor_node_affinity: bool = True
    honor_node_taints: bool = False


@dataclass(frozen=True, slots=True)
class Toleration:
    """spec.tolerations[]. operator: Equal, Exists, Lt, Gt; key '' with Exists = every taint; effect '' = any effect."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container takes; ip 0.0.0.0 = on every address."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PodVolume:
    """A volume that limits where the pod can go.

    claim : name of its PersistentVolumeClaim; of an ephemeral volume, too. '' = none
    is_ephemeral : the claim is made for the pod and must be owned by it
    disk  : a disk named in the pod itself, for VolumeRestrictions: kind and what identifies it
    disk_read_only : that disk is only read
    """

    claim: str = ""
    is_ephemeral: bool = False
    disk: tuple[str, ...] = ()
    disk_read_only: bool = False


@dataclass(frozen=True, slots=True)
class PodConstraints:
    """Node selector, affinities, tolerations and spread of a pod. Pods that say the same share one object.

    required_node_terms : one of them must match; None = any node
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    required_node_terms: tuple[NodeSelectorTerm, ...] | None = None
    preferred_node_terms: tuple[PreferredNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_affinity: tuple[PreferredPodTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[PreferredPodTerm, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()

    @property
    def affects_others(self) -> bool:
        """Whether the pod, once placed, makes a difference to pods that come later by its own terms."""
        return bool(self.affinity or self.preferred_affinity or self.anti_affinity or self.preferred_anti_affinity)


UNCONSTRAINED = PodConstraints()
