"""On which nodes can claims be allocated? Asked of all nodes for every pod, worked out only where something changed.

Pods of one template have claims that say the same: the answers for such claims are kept, one per row, with the version
that the row had. A device that is given away concerns the nodes that can use its pool, which is one node as a rule.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.constraints import NodeSelectorTerm
from placement.filters.filter import ClusterView, Rejection
from placement.filters.node_affinity import nodes_in_any
from placement.filters.rejections import found
from profiles.gpu.dra.allocator import AllocationFailed, ChosenDevices, NodeUnusable, Supply, allocate
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.device_pools import PoolOnNode
from profiles.gpu.dra.dra_objects import ClaimSpec, ResourceClaimInfo, WhereUsable
from profiles.gpu.dra.search_time import SearchTime
from profiles.gpu.dra.selectors.expressions import Expressions

NO_DEVICES: Final = "cannot allocate all claims"
_MOST_REASONS: Final = 8

_LONGEST_SECONDS: Final = 1.0
"""Of one attempt of a pod; what was found out counts for the next one."""
_USUAL_SECONDS: Final = 0.0005
"""One node of 16 devices takes 0.01 to 0.3 ms where claims do not contradict each other."""
_MOST_KEPT: Final = 256
_MOST_SUBREQUESTS: Final = 8
"""FirstAvailableDeviceRequestMaxSize."""


@dataclass(slots=True)
class Answers:
    """For claims that say the same, one entry per row.

    looked_at : (n_rows,) version of the row when it was worked out, 0 = never
    fits      : (n_rows,) whether they can be allocated there
    score     : (n_rows,) higher the earlier the wishes that were met stand in their lists
    reasons   : by row, where it is another than that devices do not suffice
    """

    looked_at: Ints
    fits: Bools
    score: Ints
    reasons: dict[int, str] = field(default_factory=dict)

    @classmethod
    def none(cls) -> Answers:
        """Nothing has been worked out."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64))

    def grow(self, n_rows: int) -> None:
        """There are more rows."""
        missing = n_rows - len(self.fits)
        if missing > 0:
            self.looked_at = np.concatenate([self.looked_at, np.zeros(missing, dtype=np.int64)])
            self.fits = np.concatenate([self.fits, np.zeros(missing, dtype=bool)])
            self.score = np.concatenate([self.score, np.zeros(missing, dtype=np.int64)])


class ClaimFeasibility:
    """Under the lock of the tables. searches: nodes for which an allocation was looked for."""

    def __init__(self, table: DraTable) -> None:
        self._table = table
        self.time = SearchTime()
        self.expressions = Expressions(self.time)
        self.searches = 0
        self._kept: OrderedDict[tuple[ClaimSpec, ...], Answers] = OrderedDict()
        self._terms: dict[tuple[NodeSelectorTerm, ...], Bools] = {}
        self._terms_of: object = None  # what of the view `_terms` are about

    def answers(self, claims: tuple[ResourceClaimInfo, ...], view: ClusterView, rows: Bools) -> Answers:
        """claims: to be allocated together; rows: (n_rows,) where it matters. Raises AllocationFailed."""
        specs = tuple(claim.spec for claim in claims)  # by identity
        kept = self._kept.get(specs)
        if kept is None:
            kept = self._kept[specs] = Answers.none()
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(specs)
        kept.grow(view.n_rows)
        versions = self._table.row_versions
        stale = np.flatnonzero(rows & view.state.alive & (kept.looked_at[: view.n_rows] != versions))
        payer, until = claims[0].namespace, self.time.clock() + _LONGEST_SECONDS
        for row in stale.tolist():
            if not self.time.is_left(payer) or self.time.clock() > until:
                raise AllocationFailed(self.time.refuse(payer))
            self._work_out(kept, claims, view, row)
            kept.looked_at[row] = versions[row]
        return kept

    def chosen(self, claims: tuple[ResourceClaimInfo, ...], view: ClusterView, row: int) -> ChosenDevices | None:
        """The devices that the claims get there. Raises AllocationFailed, NodeUnusable."""
        self.searches += 1
        table = self._table
        matches = partial(self.expressions.matches, payer=claims[0].namespace)
        supply = Supply(table.class_of, table.used.keys(), matches, table.shares)
        return allocate(claims, self._pools(view, row), supply)

    def in_terms(self, terms: tuple[NodeSelectorTerm, ...], view: ClusterView) -> Bools:
        """(n_rows,) nodes that a node selector means, kept until a node changes."""
        version = (self._table.nodes_version, view.n_rows)
        if self._terms_of != version:
            self._terms, self._terms_of = {}, version
        known = self._terms.get(terms)
        if known is None:
            if len(self._terms) >= _MOST_KEPT:
                self._terms.clear()
            known = self._terms[terms] = nodes_in_any(terms, view)
        return known

    # Inside

    def _work_out(self, kept: Answers, claims: tuple[ResourceClaimInfo, ...], view: ClusterView, row: int) -> None:
        kept.reasons.pop(row, None)
        kept.fits[row], kept.score[row] = False, 0
        began, spent = self.time.clock(), self.time.spent
        try:
            chosen = self.chosen(claims, view, row)
        except NodeUnusable as error:
            kept.reasons[row] = str(error)
            return
        finally:
            searched = self.time.clock() - began - (self.time.spent - spent)
            if searched > _USUAL_SECONDS:
                self.time.spend(claims[0].namespace, searched)
        if chosen is not None:
            kept.fits[row], kept.score[row] = True, _score(claims, chosen)

    def _pools(self, view: ClusterView, row: int) -> list[PoolOnNode]:
        return self._table.inventory.of_node(view.state.names[row], self._meant(view, row))

    def _meant(self, view: ClusterView, row: int) -> Callable[[WhereUsable], bool]:
        name = view.state.names[row]

        def meant(where: WhereUsable) -> bool:
            if where.node:
                return where.node == name
            return where.all_nodes or (where.terms is not None and bool(self.in_terms(where.terms, view)[row]))

        return meant


def _score(claims: tuple[ResourceClaimInfo, ...], chosen: ChosenDevices) -> int:
    """computeScore of upstream: 8 for the first wish of a list, 7 for the second, ..."""
    score = 0
    for claim, devices in zip(claims, chosen, strict=True):
        met = {one.wish.name for one in devices}
        for request in claim.spec.requests if met else ():
            for place, wish in enumerate(request.wishes if request.is_list else ()):
                score += _MOST_SUBREQUESTS - place if wish.name in met else 0
    return score


def misfits(answers: Answers, elsewhere: Bools, view: ClusterView) -> list[Rejection]:
    """Nodes where devices do not suffice, and those of which something else is to be said."""
    misfit = ~answers.fits[: view.n_rows] & ~elsewhere & view.state.alive
    by_reason: dict[str, list[int]] = {}
    for row, reason in answers.reasons.items():
        if row < view.n_rows and misfit[row] and (reason in by_reason or len(by_reason) < _MOST_REASONS):
            by_reason.setdefault(reason, []).append(row)
    said = []
    for reason, rows in by_reason.items():
        nodes = np.zeros(view.n_rows, dtype=bool)
        nodes[rows] = True
        misfit[rows] = False
        said.append(Rejection(nodes, reason, preemptible=False))
    return [*found(misfit, view, NO_DEVICES, preemptible=False), *said]
