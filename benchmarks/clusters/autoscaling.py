"""Replica counts that follow load, and the lives of the pods behind them, as a HorizontalPodAutoscaler gives them."""

from __future__ import annotations

import math

import numpy as np

from base.arrays import AnyFloats, Ints

#: HPA's default tolerance: within 10 % of the target it does nothing.
TOLERANCE = 0.1


def autoscaled_replicas(
    load: AnyFloats, target: float, *, minimum: int, maximum: int, stabilisation_slots: int = 3
) -> Ints:
    """(n_slots,) replicas of a HorizontalPodAutoscaler.

        desired = ceil(load / target); downwards the highest wish of the stabilisation window counts

    load   : (n_slots,) what all pods of the service use together
    target : what one pod should use, in the same unit
    HPA reacts within minutes, so a half hour already sees the replicas that its own load asks for.
    """
    wishes: list[int] = []
    replicas = np.zeros(len(load), dtype=np.int64)
    current = minimum
    for slot, total in enumerate(load):
        ratio = float(total) / (current * target)
        wish = current if abs(ratio - 1.0) <= TOLERANCE else math.ceil(float(total) / target)
        wish = min(max(wish, minimum), maximum)
        wishes = [*wishes[-stabilisation_slots:], wish]
        current = wish if wish >= current else min(current, max(wishes))
        replicas[slot] = current
    return replicas


def lives(replicas: Ints) -> tuple[Ints, Ints]:
    """First slot and end (exclusive) of every pod behind a series of replica counts.

    Scaling down removes the youngest pods first, as the ReplicaSet controller does among equally ready ones.
    """
    first: list[int] = []
    end: list[int] = []
    living: list[int] = []
    for slot, wanted in enumerate(replicas):
        while len(living) < wanted:
            living.append(len(first))
            first.append(slot)
            end.append(len(replicas))
        while len(living) > wanted:
            end[living.pop()] = slot
    return np.array(first, dtype=np.int64), np.array(end, dtype=np.int64)
