"""One try: the recorded pods on n nodes, placed by a rule; then the true usage is played back.

A node half hour counts as hot as in `replay`: CPU, disk, network or log over 80 % of a known capacity. In addition it
counts if its memory is over capacity: fewer nodes must not be bought with pods that are killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from autoscaling.capacity.node_pool import NodePool, on_nodes
from base.arrays import Bools, Floats
from forecast.resources import MEMORY
from scorer.replay.curves import CurveForecast
from scorer.replay.metrics import hot_node_slots, shares
from scorer.replay.playback import play
from scorer.replay.preparation import Prepared, named_rule
from scorer.replay.recording import Recording
from scorer.replay.rules import Rule

BY_REQUESTS = "native"
"""The rule of a cluster in which requests decide: pods that fit nowhere wait, so all requests have to fit."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a rule on a number of nodes.

    hot_share : of node half hours
    unplaced  : pods whose requests fitted on no node; they went to one of the least overcommitted
    """

    n_nodes: int
    hot_share: float
    unplaced: int

    def holds(self, rule: str, target: float) -> bool:
        """Whether so many nodes are enough for the rule."""
        return self.hot_share <= target and (rule != BY_REQUESTS or self.unplaced == 0)


def prepared_on(prepared: Prepared, pool: NodePool, n_nodes: int) -> Prepared:
    """The same pods and beliefs on a cluster of n nodes."""
    rows = pool.rows(n_nodes)
    forecasts: Mapping[str, CurveForecast] = {
        name: forecast.on_nodes(rows) for name, forecast in prepared.forecasts.items()
    }
    return replace(prepared, recording=on_nodes(prepared.recording, rows), forecasts=forecasts)


def rule_on(prepared: Prepared, rule: str, seed: int) -> Rule:
    """A rule as `replay` plays it."""
    return named_rule(rule, prepared.recording, prepared.forecasts, seed)


def try_nodes(prepared: Prepared, pool: NodePool, rule: str, n_nodes: int, seed: int) -> Trial:
    """Place all pods anew by the rule on n nodes, and play the window back."""
    there = prepared_on(prepared, pool, n_nodes)
    playback = play(there.recording, rule_on(there, rule, seed), seed=seed)
    hot = hot_or_full(playback.node_load(there.recording), there.recording)
    return Trial(n_nodes, float(hot.mean()), playback.unplaced)


def hot_or_full(load: Floats, recording: Recording) -> Bools:
    """Which node is too small when: (n_nodes, n_slots). load: (n_nodes, n_resources, n_slots) base units."""
    share = shares(load, recording.known_capacity)
    return np.asarray(hot_node_slots(share) | (np.nan_to_num(share[:, MEMORY]) > 1.0))
