"""Free PersistentVolumes for the claims of a pod, on all nodes at once.

Source: findMatchingVolumes in framework/plugins/volumebinding/binder.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.storage_objects import ClaimInfo
from placement.filters.filter import ClusterView
from placement.index.label_terms import rows_with_labels
from placement.index.topology_pool import NONE


def smallest_first(claims: Iterable[ClaimInfo]) -> Sequence[ClaimInfo]:
    """In the order they are to be matched."""
    return sorted(claims, key=lambda claim: claim.requested or 0.0)


class VolumeMatching:
    """One claim after the other; what one has got on a node the next does not get there.

    candidates : (n_rows,) nodes that matter
    """

    def __init__(self, view: ClusterView, candidates: Bools) -> None:
        self._view, self._candidates = view, candidates
        self._kept_taken: dict[str, Bools] = {}
        self._taken: dict[str, list[Ints]] = {}

    def match(self, claim: ClaimInfo) -> Bools:
        """(n_rows,) nodes where there is a volume for the claim (FindMatchingVolume, see free_volumes.py)."""
        kept, slots = self._found(claim)
        matched = slots != NONE
        for _, nodes in kept:
            matched |= nodes
        return np.asarray(matched)

    def volume(self, claim: ClaimInfo, row: int) -> str:
        """The same for one node: the name of the volume, '' = there is none."""
        kept, slots = self._found(claim)
        for name, nodes in kept:
            if nodes[row]:
                return name
        pool = self._view.index.storage.free.pool(claim.storage_class)
        return "" if pool is None or slots[row] == NONE else str(pool.names[int(slots[row])])

    def _found(self, claim: ClaimInfo) -> tuple[list[tuple[str, Bools]], Ints]:
        """Volumes kept for it with the nodes (n_rows,) that reach them, and (n_rows,) slots of free ones elsewhere."""
        free, labels, n_rows = self._view.index.storage.free, self._view.index.labels, self._view.n_rows
        undecided, kept = self._candidates, []
        for volume in free.kept_for(claim):
            taken = self._kept_taken.get(volume.name, np.zeros(n_rows, dtype=bool))
            here = undecided & ~taken
            reachable = here & rows_with_labels(volume.node_terms, labels, n_rows)
            self._kept_taken[volume.name] = taken | reachable
            kept.append((volume.name, reachable))
            # A volume kept for the claim is the only one, be it out of reach.
            undecided = undecided & ~here
        pool = free.pool(claim.storage_class)
        if pool is None or not undecided.any():
            return kept, np.full(n_rows, NONE, dtype=np.int64)
        taken_before = self._taken.setdefault(claim.storage_class, [])
        slots = pool.smallest(free.suiting(pool, claim), labels, n_rows, taken_before)
        slots = np.where(undecided, slots, NONE)
        taken_before.append(slots)
        return kept, slots
