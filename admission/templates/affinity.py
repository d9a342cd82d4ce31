"""spec.affinity of a pod while bindings add to it: what is there already, and the JSON of what it has become.

What the pod's owner wrote is kept as it is written. It is compared by meaning: through kube's constraints,
with values as sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
from msgspec import Raw

from admission.templates.rendering import PREFERRED, REQUIRED, NodeTerm, PodTerm, PodTermList
from admission.templates.requirements import normal_set
from base.errors import InputError
from kube.decoding import wire
from kube.decoding.constraint_decoding import pod_constraints
from kube.objects.constraints import LabelSelector, NodeSelectorTerm, Operator, PodAffinityTerm, Requirement

MOST_AFFINITY_BYTES: Final = 32 * 1024
"""As JSON, once bindings have added to it. A pod that has more by itself can be given nothing."""


class AffinityTooLarge(InputError):
    """Of a pod, before anything is added."""


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """A term of required node affinity.

    json         : as it is, or will be, in nodeSelectorTerms
    atoms        : what must hold; fields are (requirement, "field")
    expressions  : those on labels
    """

    json: Mapping[str, Any]
    atoms: frozenset[Any]
    expressions: tuple[Requirement, ...]


_Meaning = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Affinity:
    """Where a pod may go and wants to go.

    node_selector : spec.nodeSelector, which is part of what is required
    required      : None = no required node affinity
    preferred     : JSON of the preferred node terms; preferred_known: what they mean
    pod_terms     : JSON of the terms about other pods; pod_known: what they mean
    """

    node_selector: Mapping[str, str]
    required: tuple[RequiredTerm, ...] | None
    preferred: tuple[Any, ...]
    preferred_known: frozenset[_Meaning]
    pod_terms: Mapping[PodTermList, tuple[Any, ...]]
    pod_known: Mapping[PodTermList, frozenset[_Meaning]]
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def constrained_keys(self) -> frozenset[str]:
        """Labels of nodes that are constrained: by the nodeSelector, or in any required term."""
        keys = set(self.node_selector)
        for term in self.required or ():
            keys.update(one.key for one in term.expressions)
        return frozenset(keys)

    def with_preferred(self, terms: Iterable[NodeTerm]) -> Affinity:
        """With those of the terms that are not there yet."""
        added = {(term.weight, term.atoms): term.json for term in terms}
        new = {meaning: json for meaning, json in added.items() if meaning not in self.preferred_known}
        if not new:
            return self
        return replace(
            self, preferred=(*self.preferred, *new.values()), preferred_known=self.preferred_known.union(new)
        )

    def with_pod_terms(self, added: Mapping[PodTermList, Sequence[PodTerm]]) -> Affinity:
        """With those of the terms that are not there yet."""
        pod_terms, pod_known = dict(self.pod_terms), dict(self.pod_known)
        for where, terms in added.items():
            new = {}
            for term in terms:
                # Keys that the pod lacks are passed over, and what is left must not mean every pod.
                if term.atoms or any(key in self.labels for key in term.match_label_keys):
                    meaning = _meaning_of(term, self.namespace, self.labels)
                    if meaning not in pod_known[where]:
                        new[meaning] = term.json
            if new:
                pod_terms[where] = (*pod_terms[where], *new.values())
                pod_known[where] = pod_known[where].union(new)
        return self if pod_terms == self.pod_terms else replace(self, pod_terms=pod_terms, pod_known=pod_known)


_UNREADABLE: Final = (msgspec.MsgspecError, InputError, TypeError, ValueError, OverflowError, RecursionError)


def read_affinity(spec: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> Affinity:
    """nodeSelector and affinity of a pod's spec. Raises InputError where they are none, or AffinityTooLarge."""
    written, selector = spec.get("affinity"), spec.get("nodeSelector")
    try:
        pieces = msgspec.json.encode(selector), msgspec.json.encode(written)
        if sum(map(len, pieces)) > MOST_AFFINITY_BYTES:
            raise AffinityTooLarge(f"spec.affinity has more than {MOST_AFFINITY_BYTES} bytes")
        meant = pod_constraints(wire.PodSpec(node_selector=Raw(pieces[0]), affinity=Raw(pieces[1])), namespace, labels)
    except AffinityTooLarge:
        raise
    except _UNREADABLE as error:
        raise InputError(f"spec.affinity or spec.nodeSelector cannot be read: {error}") from error
    affinity = written or {}
    node = affinity.get("nodeAffinity") or {}
    required = None
    if meant.required_node_terms is not None:
        listed = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
        required = tuple(map(_required_term, listed, meant.required_node_terms))
    return Affinity(
        node_selector=dict(meant.node_selector),
        required=required,
        preferred=tuple(node.get(PREFERRED) or ()),
        preferred_known=frozenset(
            (term.weight, normal_set(term.term.expressions))
            for term in meant.preferred_node_terms
            if not term.term.fields
        ),
        pod_terms={
            where: tuple((affinity.get(where.value[0]) or {}).get(where.value[1]) or ()) for where in PodTermList
        },
        pod_known={
            PodTermList.AFFINITY: frozenset((0, *_meaning(term)) for term in meant.affinity),
            PodTermList.ANTI_AFFINITY: frozenset((0, *_meaning(term)) for term in meant.anti_affinity),
            PodTermList.PREFERRED_AFFINITY: frozenset((p.weight, *_meaning(p.term)) for p in meant.preferred_affinity),
            PodTermList.PREFERRED_ANTI_AFFINITY: frozenset(
                (p.weight, *_meaning(p.term)) for p in meant.preferred_anti_affinity
            ),
        },
        namespace=namespace,
        labels=labels,
    )


def affinity_json(written: object, before: Affinity, after: Affinity) -> dict[str, Any]:
    """spec.affinity with what has changed from `before`, which was read from `written`.

    It shares pieces with `written` and with the templates: to be sent, not to be changed in place.
    """
    affinity = dict(written) if isinstance(written, Mapping) else {}

    def put(part: str, field_name: str, value: object) -> None:
        affinity[part] = {**(affinity.get(part) or {}), field_name: value}

    if after.required is not before.required:
        terms = [term.json for term in after.required or ()]
        old = (affinity.get("nodeAffinity") or {}).get(REQUIRED) or {}
        put("nodeAffinity", REQUIRED, {**old, "nodeSelectorTerms": terms})
    if after.preferred is not before.preferred:
        put("nodeAffinity", PREFERRED, list(after.preferred))
    for where in PodTermList:
        if after.pod_terms[where] is not before.pod_terms[where]:
            put(where.value[0], where.value[1], list(after.pod_terms[where]))
    return affinity


def _required_term(json: Mapping[str, Any] | None, term: NodeSelectorTerm) -> RequiredTerm:
    fields = frozenset((one, "field") for one in normal_set(term.fields))
    return RequiredTerm(json or {}, normal_set(term.expressions) | fields, term.expressions)


def _meaning_of(term: PodTerm, namespace: str, labels: Mapping[str, str]) -> _Meaning:
    """As `_meaning` of what kube.decoding.constraint_decoding makes of the JSON of the term."""
    own = [Requirement(key, Operator.IN, (labels[key],)) for key in term.match_label_keys if key in labels]
    named = frozenset(term.namespaces)
    if not named and term.namespace_selector is None:
        named = frozenset({namespace})
    atoms = term.atoms.union(own) if own else term.atoms
    return (term.weight, term.topology_key, atoms, named, term.namespace_atoms)


def _meaning(term: PodAffinityTerm) -> _Meaning:
    return (term.topology_key, _selected(term.selector), term.namespaces, _selected(term.namespace_selector))


def _selected(selector: LabelSelector | None) -> frozenset[Requirement] | None:
    return None if selector is None else normal_set(selector.requirements)
