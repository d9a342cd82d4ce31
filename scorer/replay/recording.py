"""What really happened in the window, ready to be played back under any placement. Usage that was measured on nodes
only moves with its pods.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from base.errors import InputError
from cluster.predicted.unknown_capacity import any_limit
from forecast.assumed_capacity import assumed_capacities
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History, PodUsage
from forecast.model import PeakModel
from forecast.peak_weights import PeakWeights, complete_history
from forecast.resources import CPU, MEMORY, RESOURCES
from scorer.replay.window import ReplayWindow, flat

LARGEST_ERROR = 1.0
"""Standard error of a weight, as a share of it, up to which usage moves with the pod. Beyond, the weight may as well be
none, and what the pod uses stays on its node."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Pods of the window, sorted as in the history. Slots count from the placement.

    service     : (n_pods,) index of the pod's service
    ending      : (n_services,) whether pods of the service run to completion: Jobs and CronJobs
    requests    : (n_pods, 2) CPU cores and memory bytes; 0 = none known
    birth, death: (n_pods,) first slot and end slot (exclusive) of the pod; birth 0 = there when the replay begins
    started     : (n_pods,) slot in which the pod began to run, below 0 where that was before the placement, as far as
                  `pod_usage` reaches back
    load        : (n_pods, n_resources, n_slots) what the pod adds to its node, base units, finite
    present     : (n_pods, n_slots) share of the slot during which the pod was there
    live        : (n_pods, n_resources) usage in the half hour before the placement, of the pods born at 0
    base        : (n_nodes, n_resources, n_slots) what nodes use besides scheduled pods
    live_base   : (n_nodes, n_resources) the same in the half hour before
    first_node  : (n_pods,) node that the pod was on in the first slot; -1 = it was not there, or on no node of these
    nodes       : (n_nodes,) index in the history of each node played with; all other node axes follow it
    capacity    : (n_nodes, n_resources) NaN = not a limit
    assumed     : (n_nodes, n_resources) capacities learned from what was known before the day of the placement
    allocatable : (n_nodes, 2) infinite = not known
    service_requests : (n_services, 2) what one more pod of a service would request, as known before the day of the
                  placement; 0 = none known
    hot         : share of its capacity above which a node counts as hot
    """

    service: Ints
    ending: Bools
    requests: Floats
    birth: Ints
    death: Ints
    started: Ints
    load: Floats32
    present: Floats32
    live: Floats
    base: Floats
    live_base: Floats
    first_node: Ints
    nodes: Ints
    capacity: Floats
    assumed: Bools
    allocatable: Floats
    service_requests: Floats
    hot: float

    @property
    def known_capacity(self) -> Floats:
        """Capacities without the assumed ones, which make no node hot or full: (n_nodes, n_resources)."""
        return np.where(self.assumed, np.nan, self.capacity)

    def assumed_names(self) -> list[str]:
        """Resources whose capacity is assumed on a node."""
        return [RESOURCES[r].name for r in np.flatnonzero(self.assumed.any(axis=0))]

    @property
    def n_slots(self) -> int:
        return int(self.load.shape[2])

    @property
    def n_services(self) -> int:
        return len(self.service_requests)

    @property
    def n_nodes(self) -> int:
        return len(self.capacity)

    def first_requests(self) -> Floats:
        """What the first pod of each service requests: (n_services, 2); 0 = nothing known, or no pod."""
        requests = np.zeros((self.n_services, 2))
        last_first = np.argsort(-self.birth, kind="stable")
        requests[self.service[last_first]] = self.requests[last_first]
        return requests

    def replicas_at_start(self) -> Floats:
        """Pods of each service that are placed first: (n_services,)."""
        return np.bincount(self.service[self.birth == 0], minlength=self.n_services).astype(np.float64)


def record(history: History, pod_usage: PodUsage, window: ReplayWindow, hot: float) -> Recording:
    """Cut the window out of a history and its pods.

    pod_usage : holds at least the days of the window
    hot       : share of its capacity above which a node counts as hot
    A slot in which a pod was there but not measured takes the mean of its service's pods as the history has it, else 0:
    of a history with attributed usage (scorer.replay.recording) that is the share of the nodes' usage. Nodes that
    were not there around the placement, or whose size is unknown, take part in nothing (`_playable`).
    """
    if pod_usage.services != history.services:
        raise InputError("the pods and the history name different services: read both from the same directory")
    missing = [day for day in window.days if day not in pod_usage.days]
    if missing:
        raise InputError(f"pod usage lacks {missing[0]}: read the days {window.days[0]} to {window.days[-1]}")
    first = pod_usage.days.index(window.days[0])
    days = slice(first, first + len(window.days))
    present = window.cut(pod_usage.present[:, days])  # (n_pods, n_slots)
    here = np.flatnonzero((present > 0).any(axis=1))
    present, service = present[here], pod_usage.service[here]
    there = present > 0
    birth = there.argmax(axis=1)
    death = present.shape[1] - there[:, ::-1].argmax(axis=1)

    before_window = flat(pod_usage.present[here])[:, : first * SLOTS_PER_DAY + window.first_slot] > 0
    # A recording from midnight on has no slot before it: the first column stands for none.
    seen = np.pad(before_window, ((0, 0), (1, 0)))
    age = np.where(seen.any(axis=1), seen.shape[1] - seen.argmax(axis=1), 0)

    usage = window.cut(pod_usage.usage[here][:, :, days])
    of_services = window.cut(history.usage_per_pod[:, :, window.first_day : window.first_day + len(window.days)])
    usage = np.where(np.isfinite(usage), usage, of_services[service])
    load = (np.nan_to_num(usage) * present[:, None]).astype(np.float32)

    before = window.history_slot - 1
    live = np.nan_to_num(flat(history.usage_per_pod)[service, :, before]).astype(np.float64)
    if window.first_slot > 0:
        own = flat(pod_usage.usage[here][:, :, days])[..., window.first_slot - 1]
        live = np.where(np.isfinite(own), own, live)

    # A day that is played back finds its nodes as they were when the pods were placed.
    capacity = history.capacity_of_days[:, :, window.first_day]
    allocatable = _allocatable_then(history, capacity)
    nodes, known = _playable(history, window, capacity, allocatable), history.before(window.first_day)
    assumed = assumed_capacities(known)[nodes]
    base = flat(history.node_usage[nodes]) - np.nan_to_num(flat(history.node_pod_usage[nodes]))
    base = np.maximum(_fill_gaps(base[..., : window.history_slot + window.n_slots], window.history_slot), 0.0)
    return Recording(
        service=service,
        ending=np.array([key.runs_to_completion for key in history.services], dtype=np.bool_),
        requests=np.nan_to_num(np.where(np.isfinite(pod_usage.requests), pod_usage.requests, 0.0))[here],
        birth=birth,
        death=death,
        started=np.where(birth == 0, -age, birth),
        load=load,
        present=present.astype(np.float32),
        live=live,
        base=base[..., window.history_slot :],
        live_base=base[..., before],
        first_node=_first_nodes(history, pod_usage.row[here], nodes, window.history_slot),
        nodes=nodes,
        capacity=np.where(np.isfinite(assumed), assumed, capacity[nodes]),
        assumed=np.isfinite(assumed),
        allocatable=np.where(np.isfinite(allocatable), allocatable, np.inf)[nodes],
        service_requests=np.nan_to_num(known.requests),
        hot=hot,
    )


def _first_nodes(history: History, rows: Ints, nodes: Ints, slot: int) -> Ints:
    """Where the pods were in a slot, as rows of `nodes`: (n_pods,), -1 = nowhere.

    rows : (n_pods,) numbers of the pods in the history's placements; -1 = not in there
    """
    now = history.placements.between(slot, slot + 1)
    row_of = np.full(len(history.nodes) + 1, -1)
    row_of[nodes] = np.arange(len(nodes))
    node_of = np.full(max(int(now.pod.max(initial=-1)), int(rows.max(initial=-1))) + 2, -1)
    node_of[now.pod] = row_of[now.node]
    return np.asarray(node_of[rows], dtype=np.int64)


def _allocatable_then(history: History, capacity: Floats) -> Floats:
    """What a node of this capacity allocates, (n_nodes, 2): known is only what it does now, the share is kept."""
    with np.errstate(invalid="ignore"):
        change = capacity[:, [CPU, MEMORY]] / history.capacity[:, [CPU, MEMORY]]
    return np.where(np.isfinite(change), history.allocatable * change, history.allocatable)


def _playable(history: History, window: ReplayWindow, capacity: Floats, allocatable: Floats) -> Ints:
    """Nodes that pods can be placed on: there around the placement, and of known size. (n_playable,) indices.

    There = measured, or holding pods, within 24 hours before or after the placement. Like the pods themselves, the
    machines they are placed on are given. A node with neither CPU nor memory known cannot be judged by any rule.
    """
    first, end = window.history_slot - SLOTS_PER_DAY, window.history_slot + SLOTS_PER_DAY
    there = np.isfinite(flat(history.node_usage)[..., first:end]).any(axis=(1, 2))
    there[history.placements.between(first, end).node] = True
    if not there.any():
        raise InputError(
            f"no node was measured or held pods within 24 hours of the placement on {window.days[0]}: "
            "choose a time at which the history has data"
        )
    size = np.concatenate([capacity[:, [CPU, MEMORY]], allocatable], axis=1)
    playable = np.flatnonzero(there & any_limit(size))
    if not len(playable):
        raise InputError(
            "no node has a known CPU or memory capacity, so no placement can be judged: "
            "export the nodes' capacity or allocatable resources into the history"
        )
    return playable


def _fill_gaps(base: AnyFloats, n_past: int) -> Floats:
    """Slots in which a node was not measured take its mean over the last of its n_past slots, else 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nodes or resources without data
        mean = np.nanmean(base[..., max(0, n_past - 28 * SLOTS_PER_DAY) : n_past], axis=-1, keepdims=True)
    return np.where(np.isfinite(base), base, np.nan_to_num(mean)).astype(np.float64)


# Usage of pods that is measured on their nodes only, so that a replay can move it with the pods.
#
# The model's peak weights say what a pod adds to a node (forecast.peak_weights). They were learned before the
# placement. In each half hour they are moved with what the nodes really used (`complete_history`). What is left of a
# node's usage stays on that node. This is the truth that every rule is judged by, the oracle included: it is as good as
# the weights.


@dataclass(frozen=True, slots=True)
class Attribution:
    """How much of a resource a replay moves by regression, and how well that part is known.

    moved      : share of the nodes' usage in the window that moves with pods which were never measured
    error      : mean standard error of their weights, as a share of the weight, by moved usage
    identified : share of the moved usage whose weight is identified (error at most 20 %)
    """

    moved: float
    error: float
    identified: float

    def to_json(self) -> dict[str, float]:
        """The figures by name."""
        return {"moved": self.moved, "error": self.error, "identified": self.identified}


def attribute_usage(
    history: History, window: ReplayWindow, model: PeakModel | None
) -> tuple[History, Mapping[str, Attribution]]:
    """The history until the end of the window with usage of pods that were never measured, and what that concerns.

    model : its weights know nothing of the window; None = no weights, and everything stays on its nodes
    The mapping is by resource, and empty where the pods of all services are measured.
    """
    if model is None:
        return history, {}
    until = history.before(window.first_day + len(window.days))
    with np.errstate(invalid="ignore"):
        known: Bools = np.isfinite(model.peak_weight).all(axis=(2, 3)) & (model.peak_weight_error <= LARGEST_ERROR)
    from_nodes = known & ~np.isfinite(until.usage_per_pod).any(axis=(2, 3))
    if not from_nodes.any():
        return history, {}
    # The published weight of a service that is not identified is its prior. Its curve keeps what the regression found,
    # so that the sums on nodes are right.
    found = model.usage_day_type + model.per_pod_cost
    weights = PeakWeights(
        weight=np.where((np.asarray(model.identified) > 0)[:, :, None, None], model.peak_weight, found),
        error=model.peak_weight_error,
        identified=np.asarray(model.identified) > 0,
        from_nodes=from_nodes,
        prior=model.peak_weight_prior,
        correction=model.correction,
        per_pod_cost=model.per_pod_cost,
        node_base=model.node_base,
        determined=np.full_like(model.peak_weight_error, np.nan),
    )
    completed = complete_history(until, weights)
    return completed, {
        RESOURCES[r].name: _attribution(completed, window, weights, int(r))
        for r in np.flatnonzero(from_nodes.any(axis=0))
    }


def _attribution(completed: History, window: ReplayWindow, weights: PeakWeights, resource: int) -> Attribution:
    """Figures of one resource over the window."""
    slots = slice(window.history_slot, window.history_slot + window.n_slots)
    of_pod = np.nan_to_num(flat(completed.usage_per_pod)[:, resource, slots])
    usage: Floats = (of_pod * np.nan_to_num(flat(completed.replicas)[:, slots])).sum(axis=1, dtype=np.float64)
    usage = np.where(weights.from_nodes[:, resource], usage, 0.0)  # (n_services,)
    on_nodes = float(np.nansum(flat(completed.node_usage)[:, resource, slots], dtype=np.float64))
    error = np.nan_to_num(weights.error[:, resource].astype(np.float64))
    total = max(float(usage.sum()), np.finfo(np.float64).tiny)
    return Attribution(
        moved=float(usage.sum() / on_nodes) if on_nodes > 0 else 0.0,
        error=float((usage * error).sum() / total),
        identified=float(usage[weights.identified[:, resource]].sum() / total),
    )
