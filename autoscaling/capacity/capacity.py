"""The fewest nodes for each placement rule, with and without a reserve, and what they are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autoscaling.capacity.failure import Failure, busiest_slot, try_failure
from autoscaling.capacity.fewest import fewest
from autoscaling.capacity.hours import HourlyNodes, filled_nodes, hourly_nodes
from autoscaling.capacity.node_pool import NodePool, chosen_group, node_groups
from autoscaling.capacity.options import CapacityOptions
from autoscaling.capacity.trial import Trial, prepared_on, try_nodes
from forecast.errors import InputError
from forecast.progress import Progress, silent
from forecast.resources import HOT_RESOURCES, RESOURCES
from scorer.replay.preparation import Prepared
from scorer.replay.replay import RULES

_GUESS_FIRST = ("oracle", "forecast", "last_week", "live", "native")
"""The rules from the one that needs the fewest nodes on: each search begins where the one before ended."""


@dataclass(frozen=True, slots=True)
class RuleNodes:
    """What one rule needs.

    nodes    : the fewest that keep the target; None = more than the search looks at
    trial    : what came of them; None likewise
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


@dataclass(frozen=True, slots=True)
class Capacity:
    """Figures of every rule.

    pool     : the groups that were used, in the first place; a cheaper choice of a rule is in its `mix`
    recorded : nodes that took part in the window
    base_share : share of the usage that stays on nodes, and so comes and goes with them, by resource
    by_hour  : None = no number of nodes for the forecast or the oracle
    """

    prepared: Prepared
    seed: int
    target: float
    pool: NodePool
    recorded: Mapping[str, int]
    rules: Mapping[str, RuleNodes]
    failure: Failure | None
    busiest_slot: int
    base_share: Mapping[str, float]
    by_hour: HourlyNodes | None

    def to_json(self) -> dict[str, Any]:
        """The figures as `capacity --json` writes them."""
        window = self.prepared.window
        return {
            "nodes": {rule: figures.nodes for rule, figures in self.rules.items()},
            "target": self.target,
            "recorded": sum(self.recorded.values()),
            "seed": self.seed,
            "groups": dict(self.recorded),
            "rules": {rule: figures.to_json() for rule, figures in self.rules.items()},
            "reserve": None
            if self.failure is None
            else {
                **self.failure.to_json(),
                "busiest_half_hour": self.busiest_slot,
                "nodes": {rule: figures.reserve for rule, figures in self.rules.items()},
            },
            "by_hour": None
            if self.by_hour is None
            else {
                "forecast": self.by_hour.expected.tolist(),
                "oracle": self.by_hour.needed.tolist(),
                "hours_under": self.by_hour.under,
            },
            "stays_on_nodes": dict(self.base_share),
            "window": {
                "first_day": window.days[0].isoformat(),
                "first_slot": window.first_slot,
                "days": window.n_days,
            },
        }


def capacity(
    prepared: Prepared,
    options: CapacityOptions,
    *,
    seed: int = 0,
    group: str | None = None,
    prices: Mapping[str, float] | None = None,
    failure: Failure | None = None,
    rules: Collection[str] = RULES,
    progress: Progress = silent,
) -> Capacity:
    """Search the fewest nodes for each rule.

    group  : nodes of this group alone; None = all groups in their recorded proportion
    prices : of a node of each group; each rule then has the cheapest of the proportion and each group alone
    """
    recording = prepared.recording
    groups = node_groups(recording)
    used = groups if group is None else (chosen_group(groups, group),)
    for name in prices or {}:
        chosen_group(groups, name)
    if prices and (unpriced := [one.name for one in used if one.name not in prices]):
        raise InputError(f"node group {unpriced[0]!r} has no price: give one to each group, or leave prices out")
    pool = NodePool(used)
    pools = [pool, *(NodePool((one,)) for one in used if prices and len(used) > 1)]
    most = max(int(options.most * recording.n_nodes), 2)
    search = _Search(prepared, seed, options.target, failure, most)
    found: dict[str, RuleNodes] = {}
    searched = [rule for rule in _GUESS_FIRST if rule in rules]
    for number, choice in enumerate(pools):
        guess = _filled(prepared, choice)
        for done, rule in enumerate(searched, start=number * len(searched) + 1):
            figures = search.nodes_of(rule, choice, guess, prices)
            guess = figures.nodes or guess
            found[rule] = _cheaper(found.get(rule), figures)
            progress("capacity", done, len(searched) * len(pools))
    by_hour = None
    if (
        (ours := found.get("forecast")) is not None
        and (best := found.get("oracle")) is not None
        and ours.nodes is not None
        and best.nodes is not None
        and ours.mix.keys() == best.mix.keys()
    ):
        typical = prepared_on(prepared, NodePool(tuple(one for one in used if one.name in ours.mix)), recording.n_nodes)
        by_hour = hourly_nodes(
            typical.recording, typical.forecasts["forecast"], prepared.window.first_slot, ours.nodes, best.nodes
        )
    return Capacity(
        prepared=prepared,
        seed=seed,
        target=options.target,
        pool=pool,
        recorded={one.name: len(one.rows) for one in groups},
        rules={rule: found[rule] for rule in RULES if rule in found},
        failure=failure,
        busiest_slot=busiest_slot(recording),
        base_share=_base_share(prepared),
        by_hour=by_hour,
    )


class _Search:
    """Searches, with what they have in common."""

    def __init__(
        self,
        prepared: Prepared,
        seed: int,
        target: float,
        failure: Failure | None,
        most: int,
    ) -> None:
        self._prepared, self._seed, self._target = prepared, seed, target
        self._failure, self._most = failure, most

    def nodes_of(self, rule: str, pool: NodePool, guess: int, prices: Mapping[str, float] | None) -> RuleNodes:
        """What a rule needs of the nodes of a pool."""
        trials: dict[int, Trial] = {}

        def trial(n_nodes: int) -> Trial:
            if n_nodes not in trials:
                trials[n_nodes] = try_nodes(self._prepared, pool, rule, n_nodes, self._seed)
            return trials[n_nodes]

        def holds(n_nodes: int) -> bool:
            return trial(n_nodes).holds(rule, self._target)

        nodes = fewest(holds, guess, most=self._most)
        if nodes is None:
            return RuleNodes(None, None, None, None, {}, None)
        within: int | None = nodes
        if trial(nodes).unplaced:
            within = fewest(
                lambda n: holds(n) and trial(n).unplaced == 0, self._fitting(pool, nodes), least=nodes, most=self._most
            )
        reserve = None
        failure = self._failure
        if failure is not None:
            reserve = fewest(
                lambda n: holds(n) and self._survives(rule, pool, n, failure),
                failure.guess(nodes),
                least=max(nodes, failure.least()),
                most=self._most,
            )
        mix = pool.mix(nodes)
        cost = None if prices is None else sum(prices[name] * count for name, count in mix.items())
        return RuleNodes(nodes, trial(nodes), within, reserve, mix, cost)

    def _survives(self, rule: str, pool: NodePool, n_nodes: int, failure: Failure) -> bool:
        return try_failure(self._prepared, pool, rule, n_nodes, self._seed, failure).holds(rule, self._target)

    def _fitting(self, pool: NodePool, least: int) -> int:
        """Nodes that have as much to allocate as is requested at once."""
        recording = self._prepared.recording
        born = np.zeros((recording.n_slots + 1, 2))
        np.add.at(born, recording.birth, recording.requests)
        np.add.at(born, recording.death, -recording.requests)
        requested = np.cumsum(born, axis=0).max(axis=0)
        allocatable = recording.allocatable[pool.order].mean(axis=0)
        return max(least, int(np.ceil(np.nan_to_num(requested / allocatable).max())))


def _filled(prepared: Prepared, pool: NodePool) -> int:
    """Nodes that the pods of the window would fill without any waste, as a first guess."""
    there = prepared_on(prepared, pool, len(pool.order)).recording
    return int(np.ceil(filled_nodes(there, there.load.sum(axis=0, dtype=np.float64), there.base).max())) or 1


def _cheaper(one: RuleNodes | None, other: RuleNodes) -> RuleNodes:
    """The one that costs less; the first of equal ones."""
    if one is None or one.cost is None:
        return other if one is None or other.cost is not None else one
    return other if other.cost is not None and other.cost < one.cost else one


def _base_share(prepared: Prepared) -> Mapping[str, float]:
    """Share of the usage of each resource that is not of pods."""
    recording = prepared.recording
    base, pods = recording.base.sum(axis=(0, 2)), recording.load.sum(axis=(0, 2), dtype=np.float64)
    used: Sequence[int] = [r for r in (*HOT_RESOURCES,) if base[r] + pods[r] > 0]
    return {RESOURCES[r].name: float(base[r] / (base[r] + pods[r])) for r in used}
