"""Where do the pods of a node hold more than it has? Counted as NodeResourcesFit counts: per resource, extended ones
and the number of pods included, in whole units.

A pod holds what its kubelet has set aside for it. What its spec asks for since, by a resize, the kubelet grants where
there is room, and defers where there is none: whoever may resize a pod must not get others evicted by that. Nor must
whoever creates a pod with a node of his choice: while nobody has bound such a pod and its kubelet has not admitted it,
it holds nothing.

The API server does not check fit on binding, so two schedulers that share a node can pass its allocatable, each by a
decision that was right when it was made. A terminating pod counts until it is gone, as it does for kube-scheduler; one
that is only assumed to be bound does not: what it would overcommit may never come.

A node may also become smaller under its pods: a device plugin restarts and the node has no cards for some seconds, or
the administrator reserves more for the system. No pod was placed wrongly then, and evicting would do harm: such
resources are listed apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.columns import request_units, whole_units
from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo, PodInfo, PodPhase
from placement.filters.node_resources_fit import NodeResourcesFit

_PODS = "pods"
_RESERVED_FROM = frozenset({"cpu", "memory", "ephemeral-storage", _PODS})
"""Resources of which a node keeps some for itself: less allocatable than capacity says nothing."""


class OvercommitCause(Enum):
    """How it came about."""

    OWN = "own"  # bindings, on a node that is ours alone: a mistake, ours or of a scheduler that ignores the domain
    SHARED = "shared"  # bindings, on a node where another scheduler places pods, too
    SHRUNK = "shrunk"  # its pods had fitted before the node became smaller


@dataclass(frozen=True, slots=True)
class Overcommit:
    """One node.

    excess : whole units by which requests pass allocatable, by resource; those that are for bindings only, unless
             the cause is SHRUNK
    pods   : all that sit there and are bound
    awaited: UIDs of pods that their kubelet may still reject; nobody goes for them
    """

    node: str
    cause: OvercommitCause
    excess: Mapping[str, int]
    pods: tuple[PodInfo, ...]
    awaited: frozenset[str] = frozenset()


def excess_units(state: ClusterState, fit: NodeResourcesFit) -> Ints:
    """(n_rows, n_kinds) whole units by which requests pass allocatable, assumed pods included; 0 where they do not."""
    allocatable, requested = state.allocatable_units, np.array(state.requested_units)
    requested[:, state.kinds[_PODS]] = state.pod_count
    excess = np.maximum(requested - allocatable, 0)
    for kind, column in state.kinds.items():
        if kind in fit.device_class_resources:
            excess[allocatable[:, column] == 0, column] = 0
        elif kind != _PODS and not fit.counts(kind):
            excess[:, column] = 0
    excess[~state.alive] = 0
    return np.asarray(excess)


def units_of(pods: Iterable[PodInfo], kind: str) -> int:
    """What some pods hold of a resource, in whole units."""
    return sum(1 if kind == _PODS else request_units(kind, _held(pod).get(kind, 0.0)) for pod in pods)


def is_answered(pod: PodInfo) -> bool:
    """Whether its kubelet has admitted it; one that was rejected has failed, and sits nowhere."""
    return pod.acknowledged or pod.started is not None or pod.phase is not PodPhase.PENDING


def holds(pod: PodInfo) -> bool:
    """Whether a pod that names a node holds something there: a scheduler has bound it, or its kubelet admitted it."""
    return pod.scheduled is not None or is_answered(pod)


def _held(pod: PodInfo) -> Mapping[str, float]:
    return pod.requests if pod.set_aside is None else pod.set_aside


def overcommit_of(
    node: NodeInfo,
    pods: Sequence[PodInfo],
    kinds: Collection[str],
    *,
    fitted_in: Mapping[str, int] | None,
    is_shared: bool,
) -> Overcommit | None:
    """What is wrong with a node, None = nothing.

    pods      : those bound there
    kinds     : resources to look at
    fitted_in : allocatable units when the pods last fitted; None = that was never seen
    """
    excess: dict[str, int] = {}
    shrunk: dict[str, int] = {}
    for kind in kinds:
        requested, has = units_of(pods, kind), whole_units(kind, node.allocatable.get(kind, 0.0))
        if requested > has:
            found = shrunk if _has_shrunk(node, kind, has, requested, fitted_in) else excess
            found[kind] = requested - has
    if excess:
        return Overcommit(node.name, OvercommitCause.SHARED if is_shared else OvercommitCause.OWN, excess, tuple(pods))
    return Overcommit(node.name, OvercommitCause.SHRUNK, shrunk, tuple(pods)) if shrunk else None


def _has_shrunk(node: NodeInfo, kind: str, has: int, requested: int, fitted_in: Mapping[str, int] | None) -> bool:
    if has <= 0:
        return True  # a node that offers none: no scheduler's filters let a pod pass that requests some
    if fitted_in is not None:
        return requested <= fitted_in.get(kind, 0)
    return kind not in _RESERVED_FROM and has < whole_units(kind, node.capacity.get(kind, 0.0))


class LastFitting:
    """What nodes had when their pods last fitted, as far as it was seen."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._known: Bools = np.zeros(0, dtype=bool)
        self._allocatable: Ints = np.zeros((0, 0), dtype=np.int64)

    def see(self, state: ClusterState, fits: Bools) -> None:
        """fits: (n_rows,) nodes whose pods fit now; of the others what was known before stays."""
        known, allocatable = fits & state.alive, np.array(state.allocatable_units)
        for row in np.flatnonzero(~fits).tolist():
            if self._knows(row, state.names[row]):
                known[row] = True
                before = self._allocatable[row]
                allocatable[row] = 0
                allocatable[row, : len(before)] = before
        self._names, self._known, self._allocatable = list(state.names), known, allocatable

    def of(self, row: int, state: ClusterState) -> Mapping[str, int] | None:
        """By resource, whole units; None = it was never seen to fit."""
        if not self._knows(row, state.names[row]):
            return None
        had = self._allocatable[row]
        return {kind: int(had[column]) for kind, column in state.kinds.items() if column < len(had)}

    def _knows(self, row: int, name: str) -> bool:
        return row < len(self._names) and bool(self._known[row]) and self._names[row] == name
