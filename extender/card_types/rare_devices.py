"""Filter RareDevices: nodes with rare devices are kept free of pods that do not ask for these, and cards by type.

A pod asks for a device by requesting its extended resource, and for types of cards by the annotation
`forecast-scheduler.io/gpu-type: "A100,H100"`. A node's type is what a device plugin's labels say, such as
`nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB`; a name matches whole words of it, whatever their case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from extender.card_types.card_names import TYPE_LABELS, listed, of_any_type
from extender.filters.annotations import GPU_TYPE, comes_with_node, names_in
from extender.filters.filter import ClusterView, Rejection
from extender.filters.found import found
from forecast.arrays import Bools
from scorer.cluster.objects import PodInfo

__all__ = ["TYPE_LABELS", "RareDevices"]

_RESERVED: Final = "node(s) were kept free for pods that ask for their devices"


class RareDevices:
    """Unresolvable. Pods of a DaemonSet are let through.

    The types that a pod names are a requirement, hard or not.
    """

    name = "RareDevices"

    def __init__(
        self,
        resources: Collection[str],
        *,
        types: Collection[str] = (),
        type_labels: Collection[str] = TYPE_LABELS,
        hard: bool = True,
    ) -> None:
        """
        resources   : extended resources that are rare: their nodes are for pods that request one of them
        types       : types of cards that are rare: their nodes are for pods that name the type
        type_labels : node labels that say the type
        hard        : whether the filter rejects nodes that are reserved; else their penalty is up to the score
        """
        self.resources, self.types = tuple(resources), tuple(types)
        self.type_labels, self.hard = tuple(type_labels), hard

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evaluated per distinct type."""
        if comes_with_node(pod):
            return ()
        rejections: tuple[Rejection, ...] = ()
        if named := names_in(pod, GPU_TYPE):
            reason = f"node(s) didn't have a card of type {listed(named)}"
            rejections = found(~self._of_type(named, view), view, reason, preemptible=False)
        if self.hard:
            rejections += found(self.reserved_for_others(pod, view), view, _RESERVED, preemptible=False)
        return rejections

    def reserved_for_others(self, pod: PodInfo, view: ClusterView) -> Bools:
        """(n_rows,) nodes with rare devices that the pod does not ask for."""
        nodes = np.zeros(view.n_rows, dtype=bool)
        if comes_with_node(pod):
            return nodes
        asked = np.zeros(view.n_rows, dtype=bool)
        state = view.state
        for resource in self.resources:
            column = state.kinds.get(resource)
            if column is None:
                continue
            having = state.allocatable_units[:, column] > 0
            nodes |= having
            if pod.requests.get(resource, 0.0) > 0:
                asked |= having
        nodes &= ~asked
        if self.types:
            named = names_in(pod, GPU_TYPE)
            rare = self._of_type(self.types, view)
            nodes |= rare & ~self._of_type(named, view) if named else rare
        return nodes

    def _of_type(self, types: Iterable[str], view: ClusterView) -> Bools:
        """(n_rows,) nodes with a card of one of these types."""
        is_one = of_any_type(types)
        nodes = np.zeros(view.n_rows, dtype=bool)
        for label in self.type_labels:
            nodes |= view.index.labels.column(label).having(is_one)
        return nodes
