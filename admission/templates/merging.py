"""What a binding's rendered terms make of a pod's affinity: the rules of conflict and merging, and what is lost where
KeepPod leaves requirements out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from admission.templates.affinity import Affinity, RequiredTerm
from admission.templates.rendering import NodeTerm, PodTermList, Rendered, expressions_json
from admission.templates.requirements import contradiction, implied, normal, normal_set
from admission.templates.template_objects import ConflictRule
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


def lost_keys(affinity: Affinity, wanted: Sequence[NodeTerm]) -> tuple[str, ...]:
    """Labels of which a pod may now go where the template did not want it; () = it wanted nothing else.

    affinity : as it was when the requirements on labels that it constrains were left out
    wanted   : the template's required terms as they were rendered
    """
    taken = affinity.constrained_keys()
    terms: Sequence[RequiredTerm | None] = affinity.required or (None,)
    if len(terms) * len(wanted) > MOST_TERMS:  # too much to look at for a warning
        return tuple(sorted({one.key for term in wanted for one in term.requirements} & taken))
    # What the pod was given; where a term of that is empty, nothing at all.
    left = [[one for one in term.requirements if one.key not in taken] for term in wanted]
    lost: set[str] = set()
    for term in terms:
        missing = [_not_said(term.expressions if term else (), one.requirements, affinity) for one in wanted]
        if not all(any(_is_part(one, rest) for one in missing) for rest in left):
            lost.update(one.key for listed in missing for one in listed)
    return tuple(sorted(lost & taken))


def _not_said(pod: Sequence[Requirement], wanted: Sequence[Requirement], affinity: Affinity) -> list[Requirement]:
    return [one for one in wanted if not implied(one, pod, affinity.node_selector)]


def _is_part(part: Sequence[Requirement], whole: Sequence[Requirement]) -> bool:
    return all(one in whole for one in part)
