"""Affinity terms of pods that sit, which pods that come later meet.

Pods of a service say the same, so each distinct term is kept once, with the rows of the pods that say it. A term is
found by one label that a pod must have to be meant: of 1,000 services that keep away from their own kind a pod meets
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kube.objects.constraints import Operator, PodAffinityTerm, PodConstraints
from kube.objects.labels import selector_matches
from kube.objects.objects import PodInfo
from placement.index.domain_sums import PodsByRow, pods_by_row
from placement.index.namespaces import Namespaces

HARD_POD_AFFINITY_WEIGHT: Final = 1
"""What a required affinity term counts as in scores: hardPodAffinityWeight's default (InterPodAffinityArgs)."""

_MOST_PLACES: Final = 64
"""A term that names more values and namespaces than this is looked at for every pod."""

_Place = tuple[str | None, str | None, str | None]
"""Namespace, label key and value; None = any."""
_ANY_LABEL: Final = (None, None)


def means(term: PodAffinityTerm, pod: PodInfo, namespaces: Namespaces) -> bool:
    """Whether a term means a pod (AffinityTerm.Matches in the kube-scheduler module, framework/types.go)."""
    return selector_matches(term.selector, pod.labels) and namespaces.meant_by(term, pod.namespace)


@dataclass(slots=True, eq=False)
class SittingTerm:
    """A term, and what the pods that say it add up to by row: their number, or their weights. No entry is 0."""

    term: PodAffinityTerm
    places: tuple[_Place, ...]
    by_row: dict[int, int] = field(default_factory=dict)

    @property
    def pods(self) -> PodsByRow:
        return pods_by_row(self.by_row)


class TermTable:
    """Distinct terms, found by the pods that they mean."""

    def __init__(self) -> None:
        self._terms: dict[PodAffinityTerm, SittingTerm] = {}
        self._at: dict[_Place, dict[SittingTerm, None]] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, term: PodAffinityTerm, row: int, amount: int) -> None:
        """A pod on a row says this (its weight, or 1), or no longer does (the same, negative)."""
        if term.selector is None or not amount:
            return  # means no pod
        known = self._terms.get(term)
        if known is None:
            known = self._terms[term] = SittingTerm(term, self._places(term))
            for place in known.places:
                self._at.setdefault(place, {})[known] = None
        total = known.by_row.get(row, 0) + amount
        if total:
            known.by_row[row] = total
            return
        # Weights of several pods may cancel out; one that goes later then begins a new entry, and the sum is right.
        del known.by_row[row]
        if not known.by_row:
            del self._terms[term]
            for place in known.places:
                del self._at[place][known]
                if not self._at[place]:
                    del self._at[place]

    def add_all(self, term: PodAffinityTerm, rows: Sequence[int], amount: int) -> None:
        """A pod on each row says this from now on."""
        if term.selector is None or not amount:
            return
        known: SittingTerm | None = None
        for row in rows:
            total = 0 if known is None else known.by_row.get(row, 0) + amount
            if known is not None and total:
                known.by_row[row] = total
            else:  # a new term, or weights that cancel out
                self.add(term, row, amount)
                known = self._terms.get(term)

    def meaning(self, pod: PodInfo, namespaces: Namespaces) -> list[SittingTerm]:
        """The terms that mean a pod, in no particular order."""
        if not self._terms:
            return []
        candidates = (
            one
            for namespace in (pod.namespace, None)
            for key, value in (_ANY_LABEL, *pod.labels.items())
            for one in self._at.get((namespace, key, value), ())
        )
        return [one for one in candidates if means(one.term, pod, namespaces)]

    def _places(self, term: PodAffinityTerm) -> tuple[_Place, ...]:
        """Where to find a term: under each value of the label, and each namespace, of which a pod must have one.

        Of several labels the one with the fewest terms so far, so that `component: server` is not chosen a
        thousand times.
        """
        where: tuple[str | None, ...] = (None,)
        if term.namespace_selector is None and len(term.namespaces) <= _MOST_PLACES:
            where = tuple(sorted(term.namespaces))
        best: tuple[_Place, ...] = tuple((namespace, *_ANY_LABEL) for namespace in where)
        crowd: int | None = None
        for requirement in term.selector.requirements if term.selector else ():
            values = set(requirement.values)
            if requirement.operator is Operator.IN and len(values) * len(where) <= _MOST_PLACES:
                places = tuple((namespace, requirement.key, value) for namespace in where for value in sorted(values))
                terms_there = max((len(self._at.get(place, ())) for place in places), default=0)
                if crowd is None or terms_there < crowd:
                    best, crowd = places, terms_there
        return best


class AffinityTerms:
    """Terms of pods that sit.

    anti_affinity : required anti-affinity, with numbers of pods
    preferences   : what scores count: preferred terms by weight, those of anti-affinity negative, and required affinity
    """

    def __init__(self) -> None:
        self.anti_affinity, self.preferences = TermTable(), TermTable()

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
        for table, term, amount in self._said(pod.constraints):
            table.add(term, row, sign * amount)

    def count_all(self, rows: Sequence[int], pod: PodInfo) -> None:
        """Such a pod sits on the node of each row from now on; a row may be named more than once."""
        for table, term, amount in self._said(pod.constraints):
            table.add_all(term, rows, amount)

    def _said(self, by: PodConstraints) -> Iterator[tuple[TermTable, PodAffinityTerm, int]]:
        """Terms, where each of them belongs, and what it counts as there."""
        for term in by.anti_affinity:
            yield self.anti_affinity, term, 1
        for term in by.affinity:
            yield self.preferences, term, HARD_POD_AFFINITY_WEIGHT
        for preferred in by.preferred_affinity:
            yield self.preferences, preferred.term, preferred.weight
        for preferred in by.preferred_anti_affinity:
            yield self.preferences, preferred.term, -preferred.weight
