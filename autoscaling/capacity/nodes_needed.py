"""The fewest nodes for each placement rule, with and without a reserve, and what they are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autoscaling.autoscale_settings import CapacityOptions
from autoscaling.capacity.failure import NodeLoss, busiest_slot
from autoscaling.capacity.fewest_nodes import FewestNodesSearch, RuleNodes, filled
from autoscaling.capacity.hours import HourlyNodes, hourly_nodes
from autoscaling.capacity.node_cost import GroupPrices
from autoscaling.capacity.node_pool import RecordedPool, chosen_group, node_groups, prepared_on
from base.progress import Progress, silent
from forecast.resources import HOT_RESOURCES, RESOURCES
from scorer.replay.preparation import Prepared
from scorer.replay.replay import RULES

_GUESS_FIRST = ("oracle", "forecast", "last_week", "live", "native")
"""The rules from the one that needs the fewest nodes on: each search begins where the one before ended."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Figures of every rule.

    pool     : the groups that were used, in the first place; a cheaper choice of a rule is in its `mix`
    recorded : nodes that took part in the window
    searched_pods : pods that were placed; fewer than there are = a sample (autoscaling.capacity.fewest_nodes)
    base_share : share of the usage that stays on nodes, and so comes and goes with them, by resource
    by_hour  : None = no number of nodes for the forecast or the oracle
    prices   : None = none were asked for
    """

    prepared: Prepared
    seed: int
    target: float
    pool: RecordedPool
    recorded: Mapping[str, int]
    rules: Mapping[str, RuleNodes]
    failure: NodeLoss | None
    busiest_slot: int
    searched_pods: int
    base_share: Mapping[str, float]
    by_hour: HourlyNodes | None
    prices: GroupPrices | None

    def to_json(self) -> dict[str, Any]:
        """The figures as `capacity --json` writes them."""
        return {
            "nodes": {rule: figures.nodes for rule, figures in self.rules.items()},
            "target": self.target,
            "recorded": sum(self.recorded.values()),
            "seed": self.seed,
            "pods": len(self.prepared.recording.service),
            "searched_pods": self.searched_pods,
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
            "assumed_capacities": self.prepared.recording.assumed_names(),
            "money": None
            if self.prices is None
            else self.prices.to_json(self.recorded, {rule: one.cost for rule, one in self.rules.items()}),
            "window": self.prepared.window.to_json(),
        }


def capacity(
    prepared: Prepared,
    options: CapacityOptions,
    *,
    seed: int = 0,
    group: str | None = None,
    prices: GroupPrices | None = None,
    cheapest: bool = False,
    failure: NodeLoss | None = None,
    rules: Collection[str] = RULES,
    progress: Progress = silent,
) -> Capacity:
    """Search the fewest nodes for each rule.

    group  : nodes of this group alone; None = all groups in their recorded proportion
    prices : of the recorded nodes
    cheapest : where all groups have a price, each rule has the cheapest of the proportion and each group alone
    """
    recording = prepared.recording
    groups = node_groups(recording)
    used = groups if group is None else (chosen_group(groups, group),)
    choose = cheapest and prices is not None and len(used) > 1 and {one.name for one in used} <= prices.per_hour.keys()
    pool = RecordedPool(used)
    pools = [pool, *(RecordedPool((one,)) for one in used if choose)]
    search = FewestNodesSearch(prepared, seed, options, failure)
    found: dict[str, RuleNodes] = {}
    searched = [rule for rule in _GUESS_FIRST if rule in rules]
    for number, choice in enumerate(pools):
        guess = filled(search.prepared, choice)
        for done, rule in enumerate(searched, start=number * len(searched) + 1):
            figures = search.nodes_of(rule, choice, guess, prices)
            guess = guess if figures.trial is None else figures.trial.n_nodes
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
        typical = prepared_on(
            prepared, RecordedPool(tuple(one for one in used if one.name in ours.mix)), recording.n_nodes
        )
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
        searched_pods=len(search.prepared.recording.service),
        base_share=_base_share(prepared),
        by_hour=by_hour,
        prices=prices,
    )


def _cheaper(one: RuleNodes | None, other: RuleNodes) -> RuleNodes:
    """The one that costs less; the first of equal ones."""
    if one is None or one.cost is None:
        return other if one is None or other.cost is not None else one
    return other if other.cost is not None and other.cost < one.cost else one


def _base_share(prepared: Prepared) -> Mapping[str, float]:
    """Share of the usage of each resource that is not of pods."""
    recording = prepared.recording
    base, pods = recording.base.sum(axis=(0, 2)), recording.load.sum(axis=(0, 2), dtype=np.float64)
    used: Sequence[int] = [r for r in HOT_RESOURCES if base[r] + pods[r] > 0]
    return {RESOURCES[r].name: float(base[r] / (base[r] + pods[r])) for r in used}
