"""The search for one rule: on all pods, or on a sample of a large cluster, whose answer is scaled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autoscaling.capacity.failure import Failure, try_failure
from autoscaling.capacity.fewest import fewest
from autoscaling.capacity.hours import filled_nodes
from autoscaling.capacity.node_pool import NodePool
from autoscaling.capacity.options import CapacityOptions
from autoscaling.capacity.sample import is_large, sample_services
from autoscaling.capacity.trial import BY_REQUESTS, Trial, prepared_on, try_nodes
from scorer.replay.preparation import Prepared
from scorer.replay.recording import Recording


@dataclass(frozen=True, slots=True)
class RuleNodes:
    """What one rule needs.

    nodes    : the fewest that keep the target; None = more than the search looks at
    trial    : what came of them, or of those of the sample; None likewise
    within_requests : the fewest on which all requests fit, too
    reserve  : the fewest that keep the target in the busiest hour after the failure; None also if none was asked for
    mix      : nodes of each group
    cost     : of `nodes`; None = no prices
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
            "cost": self.cost,
        }


class Search:
    """What the searches of all rules have in common.

    prepared : what is placed: all pods, or the sample of a large cluster
    """

    def __init__(self, prepared: Prepared, seed: int, options: CapacityOptions, failure: Failure | None) -> None:
        self._all = prepared
        self.prepared = (
            sample_services(prepared, options.sample_pods, seed) if is_large(prepared, options) else prepared
        )
        self._seed, self._options, self._failure = seed, options, failure
        self._scales: dict[tuple[str, ...], float] = {}  # by the groups of a pool

    def nodes_of(self, rule: str, pool: NodePool, guess: int, prices: Mapping[str, float] | None) -> RuleNodes:
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
            cost=None if prices is None else sum(prices[name] * count for name, count in mix.items()),
        )

    def _survives(self, rule: str, pool: NodePool, n_nodes: int, failure: Failure) -> bool:
        trial = try_failure(self.prepared, pool, rule, n_nodes, self._seed, failure)
        return trial.holds(rule, self._options.target)

    def _scale(self, pool: NodePool) -> float:
        """How many times the load of the sample the load of all pods is; 1 = there is no sample."""
        if self.prepared is self._all:
            return 1.0
        groups = tuple(group.name for group in pool.groups)
        if groups not in self._scales:
            least = np.finfo(np.float64).tiny
            self._scales[groups] = _filled(self._all, pool) / max(_filled(self.prepared, pool), float(least))
        return self._scales[groups]

    def _scaled(self, n_nodes: int, scale: float, pool: NodePool, *, keeps_requests: bool) -> int:
        if self.prepared is self._all:
            return n_nodes
        # The services of a sample may request less for what they use.
        least = nodes_for_requests(self._all.recording, pool) if keeps_requests else 0
        return max(math.ceil(n_nodes * scale - 1e-9), least)


def filled(prepared: Prepared, pool: NodePool) -> int:
    """Nodes that the pods of the window would fill without any waste, as a first guess."""
    return math.ceil(_filled(prepared, pool)) or 1


def nodes_for_requests(recording: Recording, pool: NodePool) -> int:
    """Nodes that have as much to allocate as is requested at once."""
    change = np.zeros((recording.n_slots + 1, 2))
    np.add.at(change, recording.birth, recording.requests)
    np.add.at(change, recording.death, -recording.requests)
    requested = np.cumsum(change, axis=0).max(axis=0)
    return math.ceil(float((requested / recording.allocatable[pool.order].mean(axis=0)).max()) - 1e-9)


def _filled(prepared: Prepared, pool: NodePool) -> float:
    there = prepared_on(prepared, pool, len(pool.order)).recording
    return float(filled_nodes(there, there.load.sum(axis=0, dtype=np.float64), there.base).max())
