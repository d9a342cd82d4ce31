"""Plugin CardTypes: which types of cards a pod may go to, and which come first.

Filter           types that a pod requires; nodes of rare types for pods that do not name them (Protection.HARD)
NodePreference   of the nodes that passed those that come first by
                   1. what the pod prefers, in its order
                   2. the class of scarcity, for pods that name no type: the least scarce first
                   3. the pressure on the types, for pods that accept several: the lowest, and what is nearly as low
queueing hints   who is woken by what

Pods without cards go by 2 as well: nodes without cards are not scarce at all.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from extender.card_types.card_scarcity import CardScarcity, model_sums
from extender.card_types.options import Even, Protection
from extender.card_types.rare_devices import RareDevices
from extender.card_types.scarcity import pressures
from extender.card_types.wishes import Wish, accepted, ranks, wish_of
from extender.filters.annotations import comes_with_node
from extender.filters.filter import ClusterView, Rejection
from extender.filters.found import found
from extender.framework.events import ClusterEvent, EventKind
from extender.framework.plugins import Hint, Preferred
from extender.gpu.devices.demand import gpu_demand
from extender.gpu.devices.device_table import DeviceTable
from forecast.arrays import Bools, Ints
from scorer.cluster.objects import PodInfo

__all__ = ["CardTypes"]

_RARE: Final = "node(s) had rare cards that the pod does not name"


class CardTypes:
    """Filter, NodePreference and EnqueueExtensions. `CardScarcity.on_change` is to be told to the queue as
    FORECAST_CHANGED."""

    name = "CardTypes"
    woken_by = frozenset(
        {
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.UNSCHEDULED_POD_CHANGED,
            EventKind.FORECAST_CHANGED,
            EventKind.TIMEOUT,
        }
    )

    def __init__(self, devices: DeviceTable, scarcity: CardScarcity) -> None:
        self._devices, self._scarcity, self._options = devices, scarcity, scarcity.options
        self._required = RareDevices((), type_labels=devices.options.model_labels, hard=False)

    # Filter

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Unresolvable: no node gets another card because a pod is evicted there."""
        rejections = list(self._required.filter(pod, view))
        if self._options.protection is not Protection.HARD or comes_with_node(pod) or self._may_use_all(pod):
            return rejections
        rare = self._scarcity.latest.is_rare
        if not rare.any():
            return rejections
        wish = wish_of(pod, self._devices.options.model_labels)
        kept = rare & ~self._named(wish)[: len(rare)]
        return [*rejections, *found(_by_model(kept, self._devices.model) > 0, view, _RARE, preemptible=False)]

    def _may_use_all(self, pod: PodInfo) -> bool:
        return not (self._options.without_cards or self._asks(pod))

    def _asks(self, pod: PodInfo) -> bool:
        """Whether it asks for cards; what claims ask for is not known here, and taken for cards."""
        return bool(pod.resource_claims) or gpu_demand(pod, self._devices.options) is not None

    def _named(self, wish: Wish) -> Bools:
        """(n_models,) models that the pod asks for by name. One that chooses nodes by label knows what it asks for:
        which ones is NodeAffinity's to say."""
        models = tuple(self._devices.models)
        if wish.labelled is not None:
            return np.ones(len(models), dtype=bool)
        named = accepted(wish, models) if wish.required else np.zeros(len(models), dtype=bool)
        return np.asarray(named | (ranks(wish, models) < len(wish.preferred)))

    # NodePreference

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """One after the other where pressure decides: each pod that lands adds to it."""
        if comes_with_node(pod):
            return Preferred(rows, n_pods)
        model = self._devices.model[rows]
        if (model == model[0]).all():
            return Preferred(rows, n_pods)
        wish, asks = wish_of(pod, self._devices.options.model_labels), self._asks(pod)
        if wish.preferred:
            rank = _by_model(ranks(wish, tuple(self._devices.models)), model, otherwise=len(wish.preferred))
            rows, model = _lowest(rank, rows, model)
        if self._is_kept_off(wish, asks=asks):
            rows, model = _lowest(_by_model(self._scarcity.latest.band, model), rows, model)
        if asks and self._is_evened(wish) and not (model == model[0]).all():
            return Preferred(rows[self._least_pressed(model)], 1)
        return Preferred(rows, n_pods)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing that like pods do not have in common."""
        return None

    def _is_kept_off(self, wish: Wish, *, asks: bool) -> bool:
        """Whether scarce cards come last for it."""
        is_protected = self._options.protection is not Protection.OFF
        return is_protected and not wish.is_choosy and (asks or self._options.without_cards)

    def _is_evened(self, wish: Wish) -> bool:
        even = self._options.even
        return even is Even.ALL or (even is Even.NAMED and (wish.is_choosy or bool(wish.preferred)))

    def _least_pressed(self, model: Ints) -> Bools:
        """(n_nodes,) nodes of the models of which the least is wanted, or hardly more. model: (n_nodes,) of each."""
        supply, free = model_sums(self._devices)
        latest = self._scarcity.latest
        waiting = np.zeros_like(supply)
        waiting[: len(latest.waiting)] = latest.waiting
        pressure = pressures(supply - free, waiting, supply)[model]
        return np.asarray(pressure <= pressure.min() + self._options.pressure_band)

    # EnqueueExtensions

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Labels and devices of nodes, and which types are rare."""
        if event.kind not in self.woken_by:
            return Hint.SKIP
        if event.kind is EventKind.FORECAST_CHANGED and self._options.protection is not Protection.HARD:
            return Hint.SKIP
        node, before = event.node, event.before
        if node is not None and before is not None:
            is_another = node.labels != before.labels or node.allocatable != before.allocatable
            return Hint.QUEUE if is_another else Hint.SKIP
        return Hint.QUEUE


def _by_model(values: Ints | Bools, model: Ints, otherwise: int = 0) -> Ints:
    """(n_nodes,) the value of the model of each node, `otherwise` where it has none, or one that is newer.

    values: (n_models,); model: (n_nodes,) index, -1 = none
    """
    table = np.append(values.astype(np.int64), otherwise)
    return np.asarray(table[np.where(model < len(values), model, -1)])


def _lowest(key: Ints, rows: Ints, model: Ints) -> tuple[Ints, Ints]:
    """Those of the rows, and their models, whose key is the lowest; all are (n_nodes,)."""
    lowest = key == key.min()
    return rows[lowest], model[lowest]
