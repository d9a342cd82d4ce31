"""Which provider gets the next of some like pods, and how many in a row.

Pod by pod it is the one with the fewest pods for its weight that has room (the method of Sainte-Lague, here with the
pods that sit as votes given already): with room everywhere, shares are those of the weights within one pod. Of equal
ones the cheapest for such a pod, then the first listed. What sits counts, not what was given: a provider whose pods
take longer gets fewer of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace


@dataclass(frozen=True, slots=True)
class Offer:
    """weight: > 0; pods: bound there; room: for more pods, at least 1; cost: of one such pod."""

    weight: float
    pods: int
    room: int
    cost: float = 0.0


def next_share(offers: Sequence[Offer], n_pods: int) -> tuple[int, int]:
    """Index of the provider of the first pod, and how many of `n_pods` it gets in all.

    They may be given to it at once: who asks again for the rest, with these counted, gets the shares of the others.
    """
    if len(offers) == 1:
        return 0, max(1, min(n_pods, offers[0].room))
    given = [0] * len(offers)

    def rank(at: int) -> tuple[float, float, int]:
        one = offers[at]
        return (one.pods + given[at] + 0.5) / one.weight, one.cost, at

    heap = [rank(at) for at in range(len(offers)) if offers[at].room > 0]
    heapify(heap)
    first = heap[0][2]
    for _ in range(n_pods):
        at = heap[0][2]
        given[at] += 1
        if given[at] < offers[at].room:
            heapreplace(heap, rank(at))
            continue
        heapreplace(heap, (float("inf"), 0.0, at))
        if heap[0][0] == float("inf"):
            break
    return first, given[first]
