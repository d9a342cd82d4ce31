"""Filter CardTypes as far as nodes and the pod say it themselves: types that a pod names, types that are listed as
rare, and nodes with cards for pods that ask for none.

A pod asks for types of cards by the annotation `forecast-scheduler.io/gpu-type: "A100,H100"`. A node's type is what a
device plugin's labels say, such as `nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB`; a name matches whole words of it,
whatever their case. What is scarce by measure needs tables: card_types.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools
from kube.decoding.pod_needs import CLASS_PREFIX
from kube.objects.objects import PodInfo
from placement.card_names import listed, of_any_type
from placement.card_types.card_type_requests import GPU_TYPE_PREFERRED, wish_of
from placement.devices.device_demand import demand_mistake, gpu_demand
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_annotations import GPU_TYPE, comes_with_node, names_in
from placement.filters.rejections import found
from placement.node_rule_settings import CardOptions, DeviceOptions, Protection
from placement.pod_groups.group_of_pod import group_of

RARE: Final = "node(s) had rare cards that the pod does not name"
_WITHOUT: Final = "node(s) had cards, and the pod asks for none"


class ListedCards(PlainFilter):
    """Unresolvable. Pods of a DaemonSet are let through.

    The types that a pod names are a requirement, whatever is protected.
    """

    name = "CardTypes"

    def __init__(
        self,
        options: CardOptions | None = None,
        devices: DeviceOptions | None = None,
        *,
        is_offline: Callable[[PodInfo], bool] = lambda pod: False,
    ) -> None:
        """
        devices    : how nodes and pods speak of cards
        is_offline : whether a pod without cards may use idle cores of nodes with cards (docs/use/tide.md)
        """
        self.options, self.devices, self._is_offline = options or CardOptions(), devices or DeviceOptions(), is_offline

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Evaluated per distinct type."""
        if comes_with_node(pod):
            return ()
        rejections: tuple[Rejection, ...] = ()
        if named := names_in(pod, GPU_TYPE):
            reason = f"node(s) didn't have a card of type {listed(named)}"
            rejections = found(~self._of_type(named, view), view, reason, preemptible=False)
        if self.options.protection is Protection.HARD and self.options.rare_types and not self.may_use_all(pod):
            rejections += found(self.rare(pod, view), view, RARE, preemptible=False)
        if self.options.without_cards is Protection.HARD and self.is_kept_off(pod) and group_of(pod) is None:
            rejections += found(self._with_cards(view), view, _WITHOUT, preemptible=False)
        return rejections

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return True

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        """Also what `last` reads."""
        said, types = pod.constraints, (names_in(pod, GPU_TYPE), names_in(pod, GPU_TYPE_PREFERRED))
        is_alone = group_of(pod) is None
        labelled = said.node_selector, said.required_node_terms
        return types, labelled, comes_with_node(pod), self.is_kept_off(pod), self.may_use_all(pod), is_alone

    def last(self, pod: PodInfo, view: ClusterView) -> Bools:
        """(n_rows,) nodes that come after all others for the pod."""
        nodes = np.zeros(view.n_rows, dtype=bool)
        if comes_with_node(pod):
            return nodes
        if self.is_kept_off(pod):
            nodes |= self._with_cards(view)
        if self.options.protection is not Protection.OFF and self.options.rare_types and not self.may_use_all(pod):
            nodes |= self.rare(pod, view)
        return nodes

    def is_kept_off(self, pod: PodInfo) -> bool:
        """Whether nodes with cards come last for it, or are not for it: it asks for none and is not offline.

        Members of a PodGroup may belong to the work on the cards: such nodes only come last for them.
        """
        if self.options.without_cards is Protection.OFF or comes_with_node(pod):
            return False
        return not asks_for_cards(pod, self.devices) and not self._is_offline(pod)

    def may_use_all(self, pod: PodInfo) -> bool:
        """Whether rare cards are no matter to it."""
        return self.options.without_cards is Protection.OFF and not asks_for_cards(pod, self.devices)

    def rare(self, pod: PodInfo, view: ClusterView) -> Bools:
        """(n_rows,) nodes of listed types that the pod does not name. One that chooses nodes by label knows what it
        asks for: which ones is NodeAffinity's to say."""
        wish = wish_of(pod, self.devices.model_labels)
        if wish.labelled is not None:
            return np.zeros(view.n_rows, dtype=bool)
        rare, named = self._of_type(self.options.rare_types, view), (*wish.required, *wish.preferred)
        return rare & ~self._of_type(named, view) if named else rare

    def _with_cards(self, view: ClusterView) -> Bools:
        """(n_rows,) nodes that offer cards by a device plugin."""
        nodes, state, devices = np.zeros(view.n_rows, dtype=bool), view.state, self.devices
        for resource in (*devices.resources, devices.count_resource):
            column = state.kinds.get(resource)
            if column is not None:
                nodes |= state.allocatable_units[:, column] > 0
        return nodes

    def _of_type(self, types: Iterable[str], view: ClusterView) -> Bools:
        """(n_rows,) nodes with a card of one of these types."""
        is_one = of_any_type(types)
        nodes = np.zeros(view.n_rows, dtype=bool)
        for label in self.devices.model_labels:
            nodes |= view.index.labels.column(label).having(is_one)
        return nodes


def asks_for_cards(pod: PodInfo, devices: DeviceOptions) -> bool:
    """Whether it asks for cards, or means to. What claims and DeviceClasses offer is not known here, and taken for
    cards."""
    by_class = any(ask.resource.startswith(CLASS_PREFIX) for ask in pod.device_asks)
    by_dra = bool(pod.resource_claims) or by_class
    return by_dra or gpu_demand(pod, devices) is not None or bool(demand_mistake(pod, devices))
