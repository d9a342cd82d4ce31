"""Plays days forward from the recorded placement: pods come and go as recorded, services are released, and a mover
names pods and their targets in each half hour, by what it sees of the half hour before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from base.arrays import Bools, Floats32, Ints
from base.progress import Progress, silent
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from rebalancer.cooldown import PastMove
from scorer.replay.recording import Recording
from scorer.replay.replay_figures import hot_node_slots, shares
from scorer.replay.replay_rules import ReplayRule
from scorer.replay.running_cluster import RunningCluster
from scorer.replay.window import DEFAULT_HOUR

NIGHT_SLOT: Final = DEFAULT_HOUR * 60 // SLOT_MINUTES
"""04:00, the quiet hour: first services are released, then the night's plan is made, hours before the ramp."""


@dataclass(frozen=True, slots=True)
class PlayedMove(PastMove):
    """slot : at whose beginning the pod was moved; `night` is the day of the trajectory."""

    slot: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """A pod leaves its node.

    target : row of the node it goes to; None = it is evicted, and its replacement is placed by the placement rule
    """

    pod: int
    target: int | None = None


class Mover(Protocol):
    """Decides which running pods leave their nodes in a half hour."""

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        """Pods that move at the beginning of a half hour, in order. `cluster.state` holds the usage of the one before.

        past : moves that each pod has behind it since it was last placed anew, by pod, oldest first
        """


class NoMover:
    """Leaves every pod where it is."""

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        return ()


@dataclass(frozen=True, slots=True)
class MadeMove:
    """A pod was moved at the beginning of a slot. Nodes are rows of the recording's."""

    slot: int
    pod: int
    source: int
    target: int
    is_return: bool
    """Whether the pod came to a node that a move took it away from before, or from which it was just evicted."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What came of one rule.

    share    : (n_nodes, n_resources, n_slots) of capacity, NaN = no limit
    moves    : in the order in which they were made
    released : pods that were placed anew by additional releases
    unplaced : pods whose requests fitted on no node; they went to one of the least overcommitted
    limit    : share above which a node is hot
    """

    share: Floats32
    moves: tuple[MadeMove, ...]
    released: int
    unplaced: int
    limit: float

    @property
    def hot(self) -> Bools:
        """Which node was hot when: (n_nodes, n_slots)."""
        return hot_node_slots(self.share, self.limit)


def play_days(
    recording: Recording,
    rule: ReplayRule,
    mover: Mover,
    releases: Mapping[int, Ints],
    *,
    seed: int,
    progress: Progress = silent,
    stage: str = "trajectory",
) -> Trajectory:
    """Play the recording's days under a placement rule and a mover.

    recording : begins at a midnight
    releases  : services released by day, in addition to what is recorded
    """
    cluster, n_days = RunningCluster(recording, rule), -(-recording.n_slots // SLOTS_PER_DAY)
    load = np.zeros((recording.n_nodes, recording.load.shape[1], recording.n_slots), dtype=np.float32)
    past: dict[int, list[PlayedMove]] = {}
    made: list[MadeMove] = []
    n_released = 0
    for slot in range(recording.n_slots):
        day, of_day = divmod(slot, SLOTS_PER_DAY)
        cluster.end_pods(slot)
        if slot > 0:
            load[:, :, slot - 1] = cluster.measure(slot - 1)
        else:
            _start(cluster, recording, seed)
        if of_day == NIGHT_SLOT and day in releases:
            n_released += _release(cluster, recording, releases[day], slot, seed, past)
        relocations = mover.relocate(slot, cluster, past)
        made += [_move(cluster, one.pod, one.target, slot, past) for one in relocations]
        if slot > 0 and len(born := cluster.born(slot)):
            cluster.place(np.random.default_rng((seed, slot)).permutation(born), slot)
        if of_day == 0:
            progress(stage, day, n_days)
    load[:, :, -1] = cluster.measure(recording.n_slots - 1)
    progress(stage, n_days, n_days)
    share = shares(load, recording.known_capacity).astype(np.float32)
    return Trajectory(share, tuple(made), n_released, cluster.state.overcommitted, recording.hot)


def _start(cluster: RunningCluster, recording: Recording, seed: int) -> None:
    """Put the pods where they were recorded. Those whose node is unknown are placed by the rule."""
    there = cluster.born(0)
    known = recording.first_node[there] >= 0
    for pod in there[known].tolist():
        cluster.put(pod, int(recording.first_node[pod]), 0)
    if not known.all():
        cluster.place(np.random.default_rng((seed, 0)).permutation(there[~known]), 0)


def _release(
    cluster: RunningCluster,
    recording: Recording,
    services: Ints,
    slot: int,
    seed: int,
    past: dict[int, list[PlayedMove]],
) -> int:
    """Place all pods of these services anew; returns how many. Their new pods have been moved nowhere yet."""
    pods = cluster.running
    pods = np.random.default_rng((seed, slot, 3)).permutation(pods[np.isin(recording.service[pods], services)])
    for pod in pods.tolist():
        cluster.take(pod)
        past.pop(pod, None)
    if len(pods):
        cluster.place(pods, slot)
    return len(pods)


def _move(
    cluster: RunningCluster, pod: int, target: int | None, slot: int, past: dict[int, list[PlayedMove]]
) -> MadeMove:
    source = cluster.take(pod)
    if target is None:
        cluster.place(np.array([pod]), slot)
    else:
        cluster.put(pod, target, slot)
    moves = past.setdefault(pod, [])
    moves.append(PlayedMove(slot // SLOTS_PER_DAY, source, slot))
    landed = int(cluster.node[pod])
    return MadeMove(slot, pod, source, landed, is_return=any(move.source == landed for move in moves))
