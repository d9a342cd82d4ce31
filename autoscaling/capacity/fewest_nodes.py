"""The search for the fewest nodes of one rule: on all pods, or on a sample of a large cluster, whose answer is scaled.
It knows a yes or no for each number, and asks as rarely as it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from autoscaling.autoscale_settings import CapacityOptions
from autoscaling.capacity.failure import NodeLoss, try_failure
from autoscaling.capacity.hours import filled_nodes
from autoscaling.capacity.node_cost import GroupPrices
from autoscaling.capacity.node_pool import BY_REQUESTS, RecordedPool, Trial, prepared_on, try_nodes
from base.arrays import Ints
from scorer.replay.curves import CurveForecast
from scorer.replay.preparation import Prepared
from scorer.replay.recording import Recording

# A part of the services that stands for a large cluster, so that a search of many tries takes seconds.
#
# The waste of a rule, its nodes over those that the load would fill, hardly depends on the size of a large cluster. So
# the search runs on some services, and its answer is scaled by what the load of all would fill.

NEIGHBOURS: Final = 2
"""Larger numbers that have to hold as well."""

_FINENESS: Final = 200
"""Numbers of nodes are searched to half a per cent: to one node below 400."""

_FIRST_STRIDE = 0.05


def is_large(prepared: Prepared, options: CapacityOptions) -> bool:
    """Whether to search on a sample."""
    return 0 < 2 * options.sample_pods <= len(prepared.recording.service)


def sample_services(prepared: Prepared, n_pods: int, seed: int) -> Prepared:
    """The pods and curves of random services with about n_pods pods together; the nodes are the same."""
    recording = prepared.recording
    order = np.random.default_rng((seed, 2)).permutation(recording.n_services)
    pods = np.cumsum(np.bincount(recording.service, minlength=recording.n_services)[order])
    services = np.sort(order[: int(np.searchsorted(pods, n_pods)) + 1])
    return replace(
        prepared,
        recording=_pods_of(recording, services),
        forecasts={name: _curves_of(forecast, services) for name, forecast in prepared.forecasts.items()},
    )


def _pods_of(recording: Recording, services: Ints) -> Recording:
    number = np.full(recording.n_services, -1)
    number[services] = np.arange(len(services))
    here = number[recording.service] >= 0
    return replace(
        recording,
        service=number[recording.service[here]],
        ending=recording.ending[services],
        requests=recording.requests[here],
        birth=recording.birth[here],
        death=recording.death[here],
        started=recording.started[here],
        load=recording.load[here],
        present=recording.present[here],
        live=recording.live[here],
        first_node=recording.first_node[here],
        service_requests=recording.service_requests[services],
    )


def _curves_of(forecast: CurveForecast, services: Ints) -> CurveForecast:
    """Without bounds and the model, which no placement needs."""
    return replace(
        forecast,
        mean=forecast.mean[services],
        curves=forecast.curves[services],
        replicas=forecast.replicas[services],
        autoscaled=forecast.autoscaled[services],
        run_seconds=forecast.run_seconds[services],
        bound=None,
        model=None,
    )


# The search for the fewest nodes. It knows a yes or no for each number, and asks as rarely as it can.
#
# More nodes are not always better: another number places every pod elsewhere, and a hot half hour comes or goes by
# chance. So a number counts only if the next two hold as well. Below it, at least one number does not hold. A smaller
# number that holds by luck, with one that does not right above it, is no answer: a cluster of that size is a gamble.


def step_at(n_nodes: int) -> int:
    """By how many nodes a large cluster is varied at least."""
    return max(n_nodes // _FINENESS, 1)


def fewest(holds: Callable[[int], bool], guess: int, *, least: int = 1, most: int) -> int | None:
    """The fewest nodes that hold, as do the next two numbers; None = not even `most` nodes.

    holds : is asked once for each number
    guess : where the search begins; it only costs time if it is wrong
    least : fewer are not asked about
    """
    known: dict[int, bool] = {}

    def ask(n_nodes: int) -> bool:
        if n_nodes not in known:
            known[n_nodes] = holds(n_nodes)
        return known[n_nodes]

    bracket = _bracket(ask, min(max(guess, least), most), least, most)
    if bracket is None:
        return None
    low, high = bracket
    step = step_at(high)
    while high - low > step:
        middle = (low + high) // 2
        low, high = (low, middle) if ask(middle) else (middle, high)
    while True:
        above = [min(high + number * step, most) for number in range(NEIGHBOURS + 1)]
        failing = [n_nodes for n_nodes in above if not ask(n_nodes)]
        if not failing:
            return high
        if failing[-1] == most:
            return None
        high = min(failing[-1] + step, most)


def _bracket(ask: Callable[[int], bool], guess: int, least: int, most: int) -> tuple[int, int] | None:
    """A number that does not hold and a larger one that does, in strides that double; None = none holds."""
    stride = max(int(guess * _FIRST_STRIDE), 1)
    if ask(guess):
        high = guess
        while high > least:
            low = max(high - stride, least)
            if not ask(low):
                return low, high
            high, stride = low, 2 * stride
        return least - 1, high
    low = guess
    while low < most:
        high = min(low + stride, most)
        if ask(high):
            return low, high
        low, stride = high, 2 * stride
    return None


@dataclass(frozen=True, slots=True)
class RuleNodes:
    """What one rule needs.

    nodes    : the fewest that keep the target; None = more than the search looks at
    trial    : what came of them, or of those of the sample; None likewise
    within_requests : the fewest on which all requests fit, too
    reserve  : the fewest that keep the target in the busiest hour after the failure; None also if none was asked for
    mix      : nodes of each group
    cost     : of `nodes`, a month, in the currency of the prices; None = no prices
    """

    nodes: int | None
    trial: Trial | None
    within_requests: int | None
    reserve: int | None
    mix: Mapping[str, int]
    cost: float | None

    def to_json(self) -> dict[str, Any]:
        """The figures by name."""
        return {
            "nodes": self.nodes,
            "hot_share": None if self.trial is None else self.trial.hot_share,
            "pods_over_requests": None if self.trial is None else self.trial.unplaced,
            "nodes_within_requests": self.within_requests,
            "nodes_with_reserve": self.reserve,
            "mix": dict(self.mix),
            "cost_per_month": self.cost,
        }


class FewestNodesSearch:
    """What the searches of all rules have in common.

    prepared : what is placed: all pods, or the sample of a large cluster
    """

    def __init__(self, prepared: Prepared, seed: int, options: CapacityOptions, failure: NodeLoss | None) -> None:
        self._all = prepared
        self.prepared = (
            sample_services(prepared, options.sample_pods, seed) if is_large(prepared, options) else prepared
        )
        self._seed, self._options, self._failure = seed, options, failure
        self._scales: dict[tuple[str, ...], float] = {}  # by the groups of a pool

    def nodes_of(self, rule: str, pool: RecordedPool, guess: int, prices: GroupPrices | None) -> RuleNodes:
        """What a rule needs of the nodes of a pool. guess: for the pods of `prepared`"""
        trials: dict[int, Trial] = {}
        scale = self._scale(pool)
        most = max(int(self._options.most * self._all.recording.n_nodes / scale), 2)

        def trial(n_nodes: int) -> Trial:
            if n_nodes not in trials:
                trials[n_nodes] = try_nodes(self.prepared, pool, rule, n_nodes, self._seed)
            return trials[n_nodes]

        def holds(n_nodes: int) -> bool:
            return trial(n_nodes).holds(rule, self._options.target)

        nodes = fewest(holds, guess, most=most)
        if nodes is None:
            return RuleNodes(None, None, None, None, {}, None)
        within: int | None = nodes
        if trial(nodes).unplaced:
            likely = max(nodes, nodes_for_requests(self.prepared.recording, pool))
            within = fewest(lambda n: holds(n) and not trial(n).unplaced, likely, least=nodes, most=most)
        reserve = None
        if self._failure is not None:
            # A sample loses its share of the nodes.
            failure = replace(self._failure, nodes=math.ceil(self._failure.nodes / scale))
            reserve = fewest(
                lambda n: holds(n) and self._survives(rule, pool, n, failure),
                failure.guess(nodes),
                least=max(nodes, failure.least()),
                most=most,
            )
        whole = self._scaled(nodes, scale, pool, keeps_requests=rule == BY_REQUESTS)
        mix = pool.mix(whole)
        return RuleNodes(
            nodes=whole,
            trial=trial(nodes),
            within_requests=None if within is None else self._scaled(within, scale, pool, keeps_requests=True),
            reserve=None if reserve is None else self._scaled(reserve, scale, pool, keeps_requests=rule == BY_REQUESTS),
            mix=mix,
            cost=None if prices is None else prices.per_month(mix),
        )

    def _survives(self, rule: str, pool: RecordedPool, n_nodes: int, failure: NodeLoss) -> bool:
        trial = try_failure(self.prepared, pool, rule, n_nodes, self._seed, failure)
        return trial.holds(rule, self._options.target)

    def _scale(self, pool: RecordedPool) -> float:
        """How many times the load of the sample the load of all pods is; 1 = there is no sample."""
        if self.prepared is self._all:
            return 1.0
        groups = tuple(group.name for group in pool.groups)
        if groups not in self._scales:
            least = np.finfo(np.float64).tiny
            self._scales[groups] = _filled(self._all, pool) / max(_filled(self.prepared, pool), float(least))
        return self._scales[groups]

    def _scaled(self, n_nodes: int, scale: float, pool: RecordedPool, *, keeps_requests: bool) -> int:
        if self.prepared is self._all:
            return n_nodes
        # The services of a sample may request less for what they use.
        least = nodes_for_requests(self._all.recording, pool) if keeps_requests else 0
        return max(math.ceil(n_nodes * scale - 1e-9), least)


def filled(prepared: Prepared, pool: RecordedPool) -> int:
    """Nodes that the pods of the window would fill without any waste, as a first guess."""
    return math.ceil(_filled(prepared, pool)) or 1


def nodes_for_requests(recording: Recording, pool: RecordedPool) -> int:
    """Nodes that have as much to allocate as is requested at once."""
    change = np.zeros((recording.n_slots + 1, 2))
    np.add.at(change, recording.birth, recording.requests)
    np.add.at(change, recording.death, -recording.requests)
    requested = np.cumsum(change, axis=0).max(axis=0)
    return math.ceil(float((requested / recording.allocatable[pool.order].mean(axis=0)).max()) - 1e-9)


def _filled(prepared: Prepared, pool: RecordedPool) -> float:
    there = prepared_on(prepared, pool, len(pool.order)).recording
    return float(filled_nodes(there, there.load.sum(axis=0, dtype=np.float64), there.base).max())
