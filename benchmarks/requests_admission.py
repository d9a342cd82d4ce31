"""How many pods a cluster of fixed nodes admits with given requests, and how hot its nodes are then.

The rule `native` of the replay decides, as kube-scheduler does by requests. Pods are those of a recorded week in random
order, then all of them again as copies: a copy lives, and uses, as the pod that it is a copy of. A number of pods is
admitted if none of them ever fits nowhere, those that autoscaling adds in the evening included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from forecast.hot_share import HOT_SHARE
from forecast.resources import MEMORY
from scorer.replay.preparation import ties
from scorer.replay.recording import Recording
from scorer.replay.replay_figures import hot_node_slots, shares
from scorer.replay.replay_rules import Native
from scorer.replay.running_cluster import Playback, play

_COPIES: Final = 3
_FINENESS: Final = 400


@dataclass(frozen=True, slots=True)
class Filled:
    """A number of pods on the nodes.

    hot, overfull : shares of node half hours; overfull = with memory above capacity
    """

    pods: int
    unplaced: int
    hot: float
    overfull: float


@dataclass(frozen=True, slots=True)
class Admission:
    """full: until a pod fits nowhere; cool: the most pods with the hot share below a limit."""

    full: Filled
    cool: Filled


def arrivals(recording: Recording, seed: int) -> Ints:
    """Rows of the recording in the order in which pods arrive."""
    rng, n_pods = np.random.default_rng(seed), len(recording.service)
    return np.concatenate([rng.permutation(n_pods) for _ in range(_COPIES)])


def filled_recording(recording: Recording, rows: Ints, requests: Floats) -> Recording:
    """The recording of these pods, a row for each. requests: (n_services, 2) of one pod"""
    service = recording.service[rows]
    return replace(
        recording,
        service=service,
        requests=requests[service],
        birth=recording.birth[rows],
        death=recording.death[rows],
        started=recording.started[rows],
        load=recording.load[rows],
        present=recording.present[rows],
        live=recording.live[rows],
        first_node=recording.first_node[rows],
    )


def fill(recording: Recording, rows: Ints, requests: Floats, seed: int) -> tuple[Filled, Playback]:
    """Place these pods, and play their week back."""
    there = filled_recording(recording, rows, requests)
    played = play(there, Native(ties(seed)), seed=seed)
    share = shares(played.node_load(there), there.known_capacity)
    overfull = np.nan_to_num(share[:, MEMORY]) > 1.0
    return Filled(
        len(rows), played.unplaced, float(hot_node_slots(share, HOT_SHARE).mean()), float(overfull.mean())
    ), played


def admission(recording: Recording, requests: Floats, seed: int, *, hot_limit: float) -> Admission:
    """Search both numbers. requests: (n_services, 2) cores and bytes of one pod"""
    order = arrivals(recording, seed)

    def tried(n_pods: int) -> Filled:
        return fill(recording, order[:n_pods], requests, seed)[0]

    full = _most(tried, lambda one: one.unplaced == 0, len(order))
    if full.hot <= hot_limit:
        return Admission(full, full)
    return Admission(full, _most(tried, lambda one: one.unplaced == 0 and one.hot <= hot_limit, full.pods))


def _most(tried: Callable[[int], Filled], holds: Callable[[Filled], bool], n_pods: int) -> Filled:
    """The largest number that holds, to a quarter of a per cent. None at all = no pods."""
    best, low, high = Filled(0, 0, 0.0, 0.0), 0, n_pods + 1
    while high - low > max(1, low // _FINENESS):
        middle = (low + high) // 2
        found = tried(middle)
        if holds(found):
            best, low = found, middle
        else:
            high = middle
    return best
