"""Single moves, the best first.

A move away from a node helps less, the more has left it already, and a target costs more, the more it has taken. So
what was found for a pod is at most too high, and the pod at the head of the heap is looked at anew only if its nodes
have changed (the lazy greedy of Minoux, 1978).
"""

from __future__ import annotations

import heapq

import numpy as np

from rebalancer.planning.steps import Draft, Step

_Entry = tuple[float, int, int, int]
"""Minus what the move is worth at most, pod, target or -1 if none was looked for, how often both nodes had changed."""


def make_single_moves(draft: Draft) -> None:
    """Make moves as long as one is worth it."""
    while _one_pass(draft):
        pass


def _one_pass(draft: Draft) -> bool:
    """Whether any move was made. Another pass finds what has become possible by nodes that cooled down."""
    tables, made = draft.tables, False
    heap: list[_Entry] = []
    for node in np.flatnonzero(tables.heat > 0).tolist():
        heap += _entries(draft, node)
    heapq.heapify(heap)
    while heap and tables.left > 0:
        _, pod, target, stamp = heapq.heappop(heap)
        if not tables.may_leave(pod):
            continue
        source = int(tables.node_of[pod])
        current = target >= 0 and stamp == tables.changed[source] + tables.changed[target]
        if current and draft.make(Step(((pod, target),))):
            made = True
            if tables.heat[target] > 0:
                for entry in _entries(draft, target):
                    heapq.heappush(heap, entry)
            continue
        found = _looked_at(draft, pod)
        if found is not None:
            heapq.heappush(heap, found)
    return made


def _entries(draft: Draft, node: int) -> list[_Entry]:
    """Pods whose leaving relieves the node by more than it costs."""
    pods = draft.tables.pods_on(node)
    worth = draft.relief(node, pods) - draft.price(pods)
    return [(-w, pod, -1, 0) for w, pod in zip(worth.tolist(), pods.tolist(), strict=True) if w > 0]


def _looked_at(draft: Draft, pod: int) -> _Entry | None:
    tables = draft.tables
    source = int(tables.node_of[pod])
    alone = np.array([pod])
    worth = float(draft.relief(source, alone)[0] - draft.price(alone)[0])
    if worth <= 0:
        return None
    target = draft.finder.best(pod)
    if target is None or worth <= target.cost:
        return None
    stamp = int(tables.changed[source] + tables.changed[target.node])
    return target.cost - worth, pod, target.node, stamp
