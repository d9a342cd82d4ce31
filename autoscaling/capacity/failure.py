"""What happens if nodes are lost in the busiest hour: their pods are placed anew on the nodes that remain.

The hour is the one with the highest load of the window, as it came; the rule does not know of it. The load of the hour
is then judged on the remaining nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaling.capacity.node_pool import RecordedPool, Trial, hot_or_full, prepared_on, rule_on
from base.arrays import Bools, Floats, Ints
from base.errors import InputError
from forecast.calendar import SLOT_MINUTES
from forecast.resources import HOT_RESOURCES
from scorer.replay.preparation import Prepared
from scorer.replay.recording import Recording
from scorer.replay.replay_figures import shares
from scorer.replay.replay_rules import ReplayedPod, ReplayRule, ReplayState
from scorer.replay.running_cluster import RunningCluster

_SLOTS_PER_HOUR: Final = 60 // SLOT_MINUTES


@dataclass(frozen=True, slots=True)
class NodeLoss:
    """What is lost: some nodes, or one of several zones of equal size. One of both is 0.

    nodes : that are lost, those with the highest load of that moment
    zones : over which the nodes are spread evenly; the largest is lost
    """

    nodes: int = 0
    zones: int = 0

    def __post_init__(self) -> None:
        if (self.nodes > 0) == (self.zones > 0) or min(self.nodes, self.zones) < 0 or self.zones == 1:
            raise InputError("a reserve is for lost nodes (at least 1) or for one of several zones (at least 2)")

    def guess(self, n_nodes: int) -> int:
        """Nodes of which so many are left."""
        return n_nodes + self.nodes if self.nodes else -(-n_nodes * self.zones // (self.zones - 1))

    def least(self) -> int:
        """Nodes of which one is left."""
        return self.nodes + 1 if self.nodes else 2

    def lost(self, load_share: Floats) -> Ints:
        """Rows of the nodes that are lost. load_share: (n_nodes,) highest share of capacity in use."""
        if self.nodes:
            return np.asarray(np.argsort(-load_share, kind="stable")[: self.nodes], dtype=np.int64)
        return np.arange(0, len(load_share), self.zones)

    def to_json(self) -> dict[str, int]:
        """What is lost, by name."""
        return {"lose_nodes": self.nodes} if self.nodes else {"lose_zone_of": self.zones}


def busiest_slot(recording: Recording) -> int:
    """First slot of the hour from the full hour on in which the cluster's load is the highest share of its capacity."""
    load = recording.base.sum(axis=0) + recording.load.sum(axis=0, dtype=np.float64)  # (n_resources, n_slots)
    capacity = np.nansum(recording.known_capacity, axis=0)
    share = shares(load[None], np.where(capacity > 0, capacity, np.nan)[None])[0, list(HOT_RESOURCES)]
    by_hour = np.nan_to_num(share).max(axis=0).reshape(-1, _SLOTS_PER_HOUR).max(axis=1)
    return int(by_hour.argmax()) * _SLOTS_PER_HOUR


def try_failure(prepared: Prepared, pool: RecordedPool, rule: str, n_nodes: int, seed: int, failure: NodeLoss) -> Trial:
    """Place by the rule on n nodes, lose nodes at the beginning of the busiest hour, and judge that hour."""
    there = prepared_on(prepared, pool, n_nodes)
    recording, slot = there.recording, busiest_slot(prepared.recording)
    remaining = _OnRemaining(rule_on(there, rule, seed))
    cluster = RunningCluster(recording, remaining)

    def order(pods: Ints, now: int) -> Ints:
        return np.random.default_rng((seed, now)).permutation(pods)

    for now in range(slot + _SLOTS_PER_HOUR):
        cluster.end_pods(now)
        born = cluster.born(now)
        if now > 0 and (len(born) or now == slot):
            cluster.measure(now - 1)
        if now == slot:
            born = np.concatenate([_lose(cluster, recording, remaining, failure), born])
        if len(born):
            cluster.place(order(born, now), now)
    hour = slice(slot, slot + _SLOTS_PER_HOUR)
    load = recording.base[:, :, hour].copy()
    for pod in np.flatnonzero(cluster.node >= 0).tolist():
        load[cluster.node[pod]] += recording.load[pod, :, hour]
    hot = hot_or_full(load, recording)[remaining.alive]
    return Trial(n_nodes, float(hot.mean()) if hot.size else 1.0, cluster.state.overcommitted)


def _lose(cluster: RunningCluster, recording: Recording, remaining: _OnRemaining, failure: NodeLoss) -> Ints:
    """Take the nodes away; returns the pods that ran there."""
    state = cluster.state
    used = shares(state.live_usage[:, :, None], recording.known_capacity)[:, list(HOT_RESOURCES), 0]
    lost = failure.lost(np.nan_to_num(used).max(axis=1))
    remaining.alive = np.ones(recording.n_nodes, dtype=np.bool_)
    remaining.alive[lost] = False
    running = cluster.running
    pods = running[~remaining.alive[cluster.node[running]]]
    for pod in pods.tolist():
        cluster.take(pod)
    state.lose(~remaining.alive)
    return pods


class _OnRemaining:
    """Implements scorer.replay.replay_rules.ReplayRule: another rule that is kept off lost nodes. alive: (n_nodes,)"""

    def __init__(self, rule: ReplayRule) -> None:
        self._rule = rule
        self.alive: Bools = np.ones(0, dtype=np.bool_)  # empty until nodes are lost

    def observe(self, slot: int, state: ReplayState) -> None:
        self._rule.observe(slot, state)

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        if len(self.alive):
            # A pod without requests fits on nodes without room, too.
            feasible = feasible & self.alive if (feasible & self.alive).any() else self.alive
        return self._rule.choose(pod, feasible, state)

    def added(self, pod: ReplayedPod, node: int) -> None:
        self._rule.added(pod, node)

    def removed(self, pod: ReplayedPod, node: int) -> None:
        self._rule.removed(pod, node)
