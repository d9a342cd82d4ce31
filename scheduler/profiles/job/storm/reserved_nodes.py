"""Which nodes room is kept on for a storm. Pure.

As few nodes as possible: those that take most of the storm's pods first, so that all others keep whole nodes. What was
kept stays where it is, as far as it still fits, and what is added goes to the same nodes first.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Ints
from cluster.tables.state import ClusterState

_MOST: int = 2**31


def free_units(state: ClusterState, kind: str) -> Ints:
    """Return free whole units of a resource that some node has named, (n_rows,); below 0 = too much is taken."""
    column = state.kinds[kind]
    taken = state.pod_count if kind == "pods" else state.requested_units[:, column]
    return np.asarray(state.allocatable_units[:, column] - taken)


def fitting(free: Ints, wanted: Ints) -> Ints:
    """(n_rows,) how many pods fit. free: (n_rows, n_kinds) whole units; wanted: (n_kinds,) of one pod, 0 = nothing."""
    asked = wanted > 0
    if not asked.any():
        return np.full(len(free), _MOST, dtype=np.int64)
    return np.asarray(np.maximum(free[:, asked] // wanted[asked], 0).min(axis=1), dtype=np.int64)


def keep_room(fits: Ints, eligible: Bools, pods: int, kept: Ints) -> Ints:
    """(n_rows,) for how many pods room is kept where: `pods` altogether, or as many as there is room for.

    fits : (n_rows,) pods that would fit; kept: (n_rows,) for how many it was kept before
    """
    most = np.where(eligible, np.minimum(fits, pods), 0)
    before = np.minimum(kept, most)
    beyond = max(0, pods - int(before.sum()))
    if beyond == 0:
        return _filled(before, np.lexsort((-before,)), pods)
    more = most - before
    return np.asarray(before + _filled(more, np.lexsort((-more, before == 0)), beyond))


def _filled(most: Ints, order: Ints, pods: int) -> Ints:
    """Return `pods` spread over one row after the other, (n_rows,), at most `most` on each."""
    ordered = most[order]
    chosen = np.zeros(len(most), dtype=np.int64)
    chosen[order] = np.clip(pods - (np.cumsum(ordered) - ordered), 0, ordered)
    return chosen
