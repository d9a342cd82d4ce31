"""JSON of a pod's scheduling fields -> constraints.py. Pieces that pods share are decoded once.

matchLabelKeys and mismatchLabelKeys are merged into selectors by the API server when a pod is created (KEP-3633,
KEP-3243); a pod that was never stored may still carry them, and merging twice changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from base.errors import InputError
from kube.decoding import wire, wire_base
from kube.decoding import wire_scheduling as scheduling
from kube.objects.constraints import (
    UNCONSTRAINED,
    HostPort,
    LabelSelector,
    NodeSelectorTerm,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    PodVolume,
    PreferredNodeTerm,
    PreferredPodTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)

_LONGEST_SHARED: Final = 8192  # bytes; see shared_json.py
_NULL: Final = bytes(wire_base.NOTHING)
_LABEL_KEYS: Final = b"atchLabelKeys"

_node_selector_decoder = msgspec.json.Decoder(wire_base.StringMap | None)
_affinity_decoder = msgspec.json.Decoder(scheduling.AffinityJson | None)
_tolerations_decoder = msgspec.json.Decoder(list[scheduling.TolerationJson] | None)
_empty_dir_decoder = msgspec.json.Decoder(scheduling.EmptyDirJson | None)
_spread_decoder = msgspec.json.Decoder(list[scheduling.SpreadJson] | None)

_OPERATORS: Final = {operator.value: operator for operator in Operator}


def pod_constraints(spec: wire.PodSpec, namespace: str, labels: Mapping[str, str]) -> PodConstraints:
    """Everything a pod says about where it may go. Raises InputError for operators that do not exist."""
    pieces = (
        bytes(spec.node_selector),
        bytes(spec.affinity),
        bytes(spec.tolerations),
        bytes(spec.topology_spread_constraints),
    )
    if pieces == (_NULL, _NULL, _NULL, _NULL):
        return UNCONSTRAINED
    # Which labels a term means depends on the pod only where it says so; its namespace matters to affinity.
    own: tuple[tuple[str, str], ...] = ()
    if _LABEL_KEYS in pieces[1] or _LABEL_KEYS in pieces[3]:
        own = tuple(sorted(labels.items()))
    where = "" if pieces[1] == _NULL else namespace
    if sum(map(len, pieces)) > _LONGEST_SHARED:
        return _constraints(pieces, where, own)
    return _shared_constraints(pieces, where, own)


def host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    """Ports of the node that containers and sidecars take (GetHostPorts in pkg/scheduler/util/utils.go)."""
    containers = [*(spec.containers or ()), *(c for c in spec.init_containers or () if c.restart_policy == "Always")]
    found = {
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports or ()
        if port.host_port and port.host_port > 0
    }
    return tuple(sorted(found, key=lambda port: (port.port, port.protocol, port.ip))) if found else ()


def pod_volumes(spec: wire.PodSpec, pod_name: str) -> tuple[PodVolume, ...]:
    """Volumes that matter to placement; all others (config maps, empty directories, projections) are left out."""
    return tuple(v for v in (_volume(volume, pod_name) for volume in spec.volumes or ()) if v is not None)


def uses_host(spec: wire.PodSpec) -> bool:
    """See PodInfo. Kinds of volumes that are not read here (hostPath, NFS, inline CSI, ...) tie a pod, too."""
    return shares_host(spec) or any(map(_is_tied, spec.volumes or ()))


def shares_host(spec: wire.PodSpec) -> bool:
    """Return whether a pod shares its node's network, processes or IPC."""
    return bool(spec.host_network or spec.host_pid or spec.host_ipc)


def local_volumes(spec: wire.PodSpec) -> tuple[str, ...]:
    """See PodInfo. The cluster-autoscaler's rule (FAQ.md, "Local storage in this case ...")."""
    return tuple(sys.intern(volume.name) for volume in spec.volumes or () if _is_local(volume))


def label_selector(selector: scheduling.LabelSelectorJson | None) -> LabelSelector | None:
    """A label selector; None matches nothing."""
    if selector is None:
        return None
    equal = [Requirement(k, Operator.IN, (v or "",)) for k, v in sorted((selector.match_labels or {}).items())]
    return LabelSelector((*equal, *_requirements(selector.match_expressions)))


def node_selector_term(term: scheduling.NodeTermJson | None) -> NodeSelectorTerm:
    """A term of a node selector."""
    if term is None:
        return NodeSelectorTerm()
    return NodeSelectorTerm(_requirements(term.match_expressions), _requirements(term.match_fields))


@lru_cache(maxsize=16384)
def _shared_constraints(
    pieces: tuple[bytes, ...], namespace: str, labels: tuple[tuple[str, str], ...]
) -> PodConstraints:
    return _constraints(pieces, namespace, labels)


def _constraints(pieces: tuple[bytes, ...], namespace: str, labels: tuple[tuple[str, str], ...]) -> PodConstraints:
    own = dict(labels)
    selector = _node_selector_decoder.decode(pieces[0]) or {}
    affinity = _affinity_decoder.decode(pieces[1]) or scheduling.AffinityJson()
    node = affinity.node_affinity or scheduling.NodeAffinityJson()
    together = affinity.pod_affinity or scheduling.PodAffinityJson()
    apart = affinity.pod_anti_affinity or scheduling.PodAffinityJson()
    required = node.required_during_scheduling_ignored_during_execution

    def terms(of: Sequence[scheduling.PodTermJson] | None) -> tuple[PodAffinityTerm, ...]:
        return tuple(_pod_term(term, namespace, own) for term in of or ())

    def preferred(of: Sequence[scheduling.WeightedPodTermJson] | None) -> tuple[PreferredPodTerm, ...]:
        return tuple(PreferredPodTerm(t.weight, _pod_term(t.pod_affinity_term, namespace, own)) for t in of or ())

    return PodConstraints(
        node_selector=tuple(sorted((key, value or "") for key, value in selector.items())),
        required_node_terms=(
            None if required is None else tuple(map(node_selector_term, required.node_selector_terms or ()))
        ),
        preferred_node_terms=tuple(
            PreferredNodeTerm(t.weight, node_selector_term(t.preference))
            for t in node.preferred_during_scheduling_ignored_during_execution or ()
        ),
        tolerations=tuple(
            Toleration(t.key or "", t.operator or "Equal", t.value or "", t.effect or "")
            for t in _tolerations_decoder.decode(pieces[2]) or ()
        ),
        affinity=terms(together.required_during_scheduling_ignored_during_execution),
        preferred_affinity=preferred(together.preferred_during_scheduling_ignored_during_execution),
        anti_affinity=terms(apart.required_during_scheduling_ignored_during_execution),
        preferred_anti_affinity=preferred(apart.preferred_during_scheduling_ignored_during_execution),
        spread=tuple(_spread(one, own) for one in _spread_decoder.decode(pieces[3]) or ()),
    )


def _requirements(expressions: Sequence[scheduling.RequirementJson] | None) -> tuple[Requirement, ...]:
    found = []
    for expression in expressions or ():
        operator = _OPERATORS.get(expression.operator)
        if operator is None:
            raise InputError(
                f"operator {expression.operator[:40]!r} of {expression.key[:80]!r} is none of {', '.join(_OPERATORS)}"
            )
        found.append(Requirement(expression.key, operator, tuple(expression.values or ())))
    return tuple(found)


def _pod_term(term: scheduling.PodTermJson, namespace: str, own: Mapping[str, str]) -> PodAffinityTerm:
    selector = label_selector(term.label_selector)
    if selector is not None:
        selector = _with_own(selector, term.match_label_keys, own, Operator.IN)
        selector = _with_own(selector, term.mismatch_label_keys, own, Operator.NOT_IN)
    named = frozenset(term.namespaces or ())
    if not named and term.namespace_selector is None:
        named = frozenset({namespace})
    return PodAffinityTerm(selector, term.topology_key, named, label_selector(term.namespace_selector))


def _spread(one: scheduling.SpreadJson, own: Mapping[str, str]) -> TopologySpreadConstraint:
    selector = label_selector(one.label_selector)
    if selector is not None:
        selector = _with_own(selector, one.match_label_keys, own, Operator.IN)
    return TopologySpreadConstraint(
        max_skew=one.max_skew,
        topology_key=one.topology_key,
        hard=one.when_unsatisfiable != "ScheduleAnyway",
        selector=selector,
        min_domains=1 if one.min_domains is None else one.min_domains,
        honor_node_affinity=one.node_affinity_policy != "Ignore",
        honor_node_taints=one.node_taints_policy == "Honor",
    )


def _with_own(
    selector: LabelSelector, keys: Sequence[str] | None, own: Mapping[str, str], operator: Operator
) -> LabelSelector:
    """The selector with the pod's own values of some labels; keys it does not have are ignored, as in Kubernetes."""
    further = [Requirement(key, operator, (own[key],)) for key in keys or () if key in own]
    return LabelSelector((*selector.requirements, *(one for one in further if one not in selector.requirements)))


def _is_tied(volume: scheduling.VolumeJson) -> bool:
    """Whether it is of a kind that neither the API server nor a table of ours has."""
    loose = (volume.config_map, volume.secret, volume.empty_dir, volume.projected, volume.downward_api)
    return all(one == wire_base.NOTHING for one in loose) and volume.image is None and _volume(volume, "") is None


def _is_local(volume: scheduling.VolumeJson) -> bool:
    if volume.host_path != wire_base.NOTHING:
        return True
    return volume.empty_dir != wire_base.NOTHING and not _is_in_memory(bytes(volume.empty_dir))


@lru_cache(maxsize=256)
def _is_in_memory(empty_dir: bytes) -> bool:
    decoded = _empty_dir_decoder.decode(empty_dir)
    return decoded is not None and decoded.medium == "Memory"


def _volume(volume: scheduling.VolumeJson, pod_name: str) -> PodVolume | None:
    """What VolumeRestrictions, VolumeBinding and NodeVolumeLimits look at (pkg/scheduler/framework/plugins)."""
    if volume.persistent_volume_claim is not None:
        return PodVolume(claim=volume.persistent_volume_claim.claim_name)
    if volume.ephemeral is not None:
        return PodVolume(claim=f"{pod_name}-{volume.name}", is_ephemeral=True)
    if (gce := volume.gce_persistent_disk) is not None:
        return PodVolume(disk=("gce", gce.pd_name), disk_read_only=bool(gce.read_only))
    if (aws := volume.aws_elastic_block_store) is not None:
        return PodVolume(disk=("aws", aws.volume_id))
    if (iscsi := volume.iscsi) is not None:
        return PodVolume(disk=("iscsi", iscsi.iqn), disk_read_only=bool(iscsi.read_only))
    if (rbd := volume.rbd) is not None:
        pool, monitors = rbd.pool or "rbd", tuple(sorted(rbd.monitors or ()))
        return PodVolume(disk=("rbd", pool, rbd.image, *monitors), disk_read_only=bool(rbd.read_only))
    if (azure := volume.azure_disk) is not None:
        return PodVolume(disk=("azure", azure.disk_uri))
    if (cinder := volume.cinder) is not None:
        return PodVolume(disk=("cinder", cinder.volume_id))
    if (portworx := volume.portworx_volume) is not None:
        return PodVolume(disk=("portworx", portworx.volume_id))
    return None
