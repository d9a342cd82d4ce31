"""Plugin CardTypes: which types of cards a pod may go to, and which come first; and all that a scheduler process
needs of it, made before the cluster is read.

Filter           types that a pod requires; nodes of rare types for pods that do not name them (Protection.HARD)
NodePreference   of the nodes that passed those that come first by
                   1. what the pod prefers, in its order
                   2. nodes without cards, for pods that ask for none
                   3. the class of scarcity, for pods that name no type: the least scarce first
                   4. the pressure on the types, for pods that accept several: the lowest, and what is nearly as low
queueing hints   who is woken by what

Pods without cards go by 3 as well: nodes without cards are not scarce at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.card_types.card_demand import CardDemand
from placement.card_types.card_scarcity import CardCollector, CardScarcity, model_sums, pressures
from placement.card_types.card_type_requests import CardTypeRequest, accepted, ranks, wish_of
from placement.card_types.listed_cards import RARE, ListedCards, asks_for_cards
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView, PlainFilter, Rejection, rejected
from placement.filters.pod_annotations import comes_with_node
from placement.filters.rejections import found
from placement.node_rule_settings import CardOptions, Even, Protection
from placement.plugins import NodePreference, Preferred


class CardTypes(PlainFilter, NodePreference):
    """Filter and NodePreference. The queue is to receive `CardScarcity.on_change` as
    FORECAST_CHANGED.

    rule_of : the rule by the policy of a pod; None = that of the options, for all pods
    """

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

    def __init__(
        self, devices: DeviceTable, scarcity: CardScarcity, rule_of: Callable[[PodInfo], ListedCards] | None = None
    ) -> None:
        self._devices, self._scarcity, self._options = devices, scarcity, scarcity.options
        rule = ListedCards(scarcity.options, devices.options)
        self._rule_of = rule_of or (lambda pod: rule)

    # Filter

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Unresolvable: no node gets another card because a pod is evicted there."""
        rule = self._rule_of(pod)
        rejections = rule.filter(pod, view)
        if rule.options.protection is not Protection.HARD or comes_with_node(pod) or rule.may_use_all(pod):
            return rejections
        rare = self._scarcity.latest.is_rare
        if not rare.any():
            return rejections
        wish = wish_of(pod, self._devices.options.model_labels)
        kept = _by_model(rare & ~self._named(wish)[: len(rare)], self._devices.model) > 0
        return [*rejections, *found(kept & ~rejected(rejections, view.n_rows), view, RARE, preemptible=False)]

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """What is rare is looked at every few seconds, not when pods land."""
        return True

    def _named(self, wish: CardTypeRequest) -> Bools:
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
        lists_types = bool(self._options.rare_types)
        if comes_with_node(pod) or not (self._devices.has_any or lists_types):
            return Preferred(rows, n_pods)
        model, cards = self._devices.model[rows], self._devices.n_devices[rows] > 0
        if not lists_types and (model == model[0]).all() and (cards == cards[0]).all():
            return Preferred(rows, n_pods)
        rule, wish = self._rule_of(pod), wish_of(pod, self._devices.options.model_labels)
        if wish.preferred:
            rank = _by_model(ranks(wish, tuple(self._devices.models)), model, otherwise=len(wish.preferred))
            rows, model = _lowest(rank, rows, model)
        protects = rule.options.protection is not Protection.OFF and not rule.may_use_all(pod)
        by_label: Bools | None = None  # cards that no device plugin offers
        if protects and lists_types and (model < 0).any():
            by_label = rule.rare(pod, view)
        if rule.is_kept_off(pod):
            has_cards = self._devices.n_devices[rows] > 0
            if by_label is not None:
                has_cards |= by_label[rows]
            rows, model = _lowest(has_cards.astype(np.int64), rows, model)
        if protects and not wish.is_choosy and (by_label is not None or self._scarcity.latest.band.any()):
            band = _by_model(self._scarcity.latest.band, model)
            if by_label is not None:
                band[by_label[rows]] = max(1, band.max())
            rows, model = _lowest(band, rows, model)
        asks = asks_for_cards(pod, self._devices.options)
        if asks and self._is_evened(wish) and not (model == model[0]).all():
            return Preferred(rows[self._least_pressed(model)], 1)
        return Preferred(rows, n_pods)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing that like pods do not have in common."""
        return None

    def _is_evened(self, wish: CardTypeRequest) -> bool:
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
        if event.kind is EventKind.FORECAST_CHANGED and self._rule_of(pod).options.protection is not Protection.HARD:
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


@dataclass(frozen=True, slots=True)
class CardPlugins:
    """
    demand    : Follower, to be attached after the devices
    scarcity  : the queue is to receive `scarcity.on_change` as FORECAST_CHANGED
    types     : Filter, NodePreference
    collector : of the metrics
    """

    demand: CardDemand
    scarcity: CardScarcity
    types: CardTypes
    collector: CardCollector


def card_plugins(
    state: ClusterState,
    devices: DeviceTable,
    options: CardOptions,
    *,
    clock: Callable[[], float] = time.time,
) -> CardPlugins:
    """Under the lock of the tables. clock: unix seconds."""
    demand = CardDemand(state, devices, half_life_seconds=options.half_life, clock=clock)
    scarcity = CardScarcity(devices, demand, options, clock=clock)
    return CardPlugins(demand, scarcity, CardTypes(devices, scarcity), CardCollector(scarcity))
