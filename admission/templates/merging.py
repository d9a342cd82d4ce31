"""What a binding's rendered terms make of a pod's affinity: the rules of conflict and merging.

Required node affinity is a list of terms of which one must match, so that "the pod's and the template's" is every
term of the one with every term of the other:

    (p1 or p2) and (t1 or t2)  =  p1 t1  or  p1 t2  or  p2 t1  or  p2 t2

less terms that no node could match, and less those that another one makes superfluous (a term that says more than
another adds nothing). Applied again it changes nothing: every term then holds one of the template's. Preferred terms,
and terms about other pods, are added where they are not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from admission.templates.affinity import Affinity, RequiredTerm
from admission.templates.objects import ConflictRule
from admission.templates.rendering import NodeTerm, PodTermList, Rendered, expressions_json
from admission.templates.requirements import contradiction, normal, normal_set
from kube.objects.constraints import Requirement

MOST_TERMS: Final = 64
"""Of each list in an affinity that we have changed: kube-scheduler looks at all of them for every node.

Required terms are counted before superfluous ones are taken out, which takes time by itself.
"""


class MergeOutcome(Enum):
    """What came of it. Of ADDED alone the affinity is another one than before."""

    ADDED = auto()
    UNCHANGED = auto()
    KEPT_POD = auto()
    CONTRADICTION = auto()
    TOO_LARGE = auto()


@dataclass(frozen=True, slots=True)
class Merged:
    """
    kept_keys     : labels on which the template's requirements were left out, as the pod already constrains them
    clashing_keys : of a CONTRADICTION: labels of which both cannot be had
    """

    outcome: MergeOutcome
    affinity: Affinity
    kept_keys: tuple[str, ...] = ()
    clashing_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Contradiction:
    keys: tuple[str, ...] = ()


def merged(affinity: Affinity, rendered: Rendered, rule: ConflictRule) -> Merged:
    """All of a binding's terms, or none: what is required is not applied without what is preferred."""
    kept: tuple[str, ...] = ()
    after = affinity
    if rendered.required:
        wanted: Sequence[NodeTerm] = rendered.required
        if rule is ConflictRule.KEEP_POD:
            wanted, kept = _left_to_us(wanted, affinity.constrained_keys())
        if wanted:
            required = _both(affinity, wanted)
            if isinstance(required, _Contradiction):
                return Merged(MergeOutcome.CONTRADICTION, affinity, kept, required.keys)
            if isinstance(required, MergeOutcome):
                return Merged(required, affinity, kept)
            if required is not affinity.required:
                after = replace(after, required=required)
    if rendered.preferred:
        after = after.with_preferred(rendered.preferred)
    if rendered.pod_terms:
        after = after.with_pod_terms(rendered.pod_terms)
    if after is affinity:
        return Merged(MergeOutcome.KEPT_POD if kept else MergeOutcome.UNCHANGED, affinity, kept)
    if _grew_too_large(affinity, after):
        return Merged(MergeOutcome.TOO_LARGE, affinity, kept)
    return Merged(MergeOutcome.ADDED, after, kept)


def _left_to_us(terms: Sequence[NodeTerm], taken: frozenset[str]) -> tuple[Sequence[NodeTerm], tuple[str, ...]]:
    """The terms less requirements on labels that are taken, and those labels.

    A term of which nothing is left holds everywhere, and with it the whole list: () then.
    """
    kept = sorted({one.key for term in terms for one in term.requirements if one.key in taken})
    if not kept:
        return terms, ()
    left = [NodeTerm(tuple(one for one in term.requirements if one.key not in taken)) for term in terms]
    return (left if all(term.requirements for term in left) else ()), tuple(kept)


def _both(
    affinity: Affinity, wanted: Sequence[NodeTerm]
) -> tuple[RequiredTerm, ...] | MergeOutcome | _Contradiction | None:
    """The pod's terms and the template's; the very same object where nothing is to be added."""
    if affinity.required is None:
        pods: Sequence[RequiredTerm] = (RequiredTerm({}, frozenset(), ()),)
    else:
        if len(affinity.required) > MOST_TERMS:
            return MergeOutcome.TOO_LARGE
        wanted_atoms = [term.atoms for term in wanted]
        if affinity.required and all(any(w <= term.atoms for w in wanted_atoms) for term in affinity.required):
            return affinity.required
        # A term that says nothing matches nothing (nodeaffinity.go): with the template's it would begin to match.
        pods = [term for term in affinity.required if term.atoms]
    if len(pods) * len(wanted) > MOST_TERMS:
        return MergeOutcome.TOO_LARGE
    clashes: dict[str, None] = {}
    possible = []
    for term in pods:
        for other in wanted:
            # Looked at first: most of what is tried in vain fails here, and a product is costly to make.
            clash = contradiction((*term.expressions, *other.requirements), affinity.node_selector)
            if clash is None:
                possible.append(_product(term, other))
            else:
                clashes[clash] = None
    return _without_superfluous(possible) if possible else _Contradiction(tuple(clashes))


def _product(term: RequiredTerm, other: NodeTerm) -> RequiredTerm:
    added = _not_in(other.requirements, term)
    json = {**term.json, "matchExpressions": [*(term.json.get("matchExpressions") or ()), *expressions_json(added)]}
    return RequiredTerm(json, term.atoms | normal_set(added), (*term.expressions, *added))


def _not_in(requirements: Sequence[Requirement], term: RequiredTerm) -> tuple[Requirement, ...]:
    return tuple(one for one in requirements if normal(one) not in term.atoms)


def _without_superfluous(terms: Sequence[RequiredTerm]) -> tuple[RequiredTerm, ...]:
    """Without terms that say all that another one says, and perhaps more. In the order they have."""
    needed: list[RequiredTerm] = []
    for number, term in enumerate(terms):
        if not any(
            other.atoms < term.atoms or (other.atoms == term.atoms and place < number)
            for place, other in enumerate(terms)
        ):
            needed.append(term)
    return tuple(needed)


def _grew_too_large(before: Affinity, after: Affinity) -> bool:
    """Whether a list that has changed is longer than it may be. (Required node terms were counted already.)"""
    return (after.preferred is not before.preferred and len(after.preferred) > MOST_TERMS) or any(
        after.pod_terms[where] is not before.pod_terms[where] and len(after.pod_terms[where]) > MOST_TERMS
        for where in PodTermList
    )
