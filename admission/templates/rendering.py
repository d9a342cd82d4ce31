"""A template and the values of its parameters -> the terms it stands for. Done once per binding, not once per pod.

What is rendered is what the API server accepts: keys and values have the syntax of labels, lists that must not be empty
are not. Values are put into a structure; no text is ever made of other text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import msgspec

from admission.templates.requirements import contradictory, normal_set
from admission.templates.template_objects import (
    NodeSchedulerConfig,
    NodeTermTemplate,
    PodTermTemplate,
    RequirementTemplate,
    Template,
    Value,
)
from base.errors import InputError
from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.labels import is_label_value, is_namespace, is_qualified_name, whole_number

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_BYTES_OF_NAMES: Final = 512


class PodTermList(Enum):
    """The lists of terms about other pods: where they are in spec.affinity."""

    AFFINITY = ("podAffinity", REQUIRED)
    PREFERRED_AFFINITY = ("podAffinity", PREFERRED)
    ANTI_AFFINITY = ("podAntiAffinity", REQUIRED)
    PREFERRED_ANTI_AFFINITY = ("podAntiAffinity", PREFERRED)

    # By identity: the standard hash of an Enum is Python code, run for every look-up.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A term of node affinity. weight 0: a required one.

    atoms : the requirements, the same for all ways to write them
    json  : a term of spec.affinity as the API server would store it, with its weight if it has one
    """

    requirements: tuple[Requirement, ...]
    weight: int = 0
    atoms: frozenset[Requirement] = field(init=False, repr=False, compare=False)
    json: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """What every pod would need is made once."""
        term = {"matchExpressions": expressions_json(self.requirements)}
        object.__setattr__(self, "atoms", normal_set(self.requirements))
        object.__setattr__(self, "json", {"weight": self.weight, "preference": term} if self.weight else term)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A term of pod (anti-)affinity. weight 0: a required one. atoms, json: as of NodeTerm; atoms are of the selector.

    namespace_atoms : of the selector of namespaces; None = it has none
    """

    requirements: tuple[Requirement, ...]
    topology_key: str
    match_label_keys: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    weight: int = 0
    atoms: frozenset[Requirement] = field(init=False, repr=False, compare=False)
    namespace_atoms: frozenset[Requirement] | None = field(init=False, repr=False, compare=False)
    json: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """What every pod would need is made once."""
        selector = self.namespace_selector
        term = _pod_term_json(self)
        object.__setattr__(self, "atoms", normal_set(self.requirements))
        object.__setattr__(self, "namespace_atoms", None if selector is None else normal_set(selector.requirements))
        object.__setattr__(self, "json", {"weight": self.weight, "podAffinityTerm": term} if self.weight else term)


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a binding adds to a pod.

    required  : one of the terms must match; () = nothing is required
    pod_terms : no list of them is empty
    json_bytes : most bytes that it adds if each term is added once
    """

    required: tuple[NodeTerm, ...] = ()
    preferred: tuple[NodeTerm, ...] = ()
    pod_terms: Mapping[PodTermList, tuple[PodTerm, ...]] = field(default_factory=dict)

    json_bytes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Count what it can add to an affinity, the names of the lists included."""
        about_pods = [term.json for terms in self.pod_terms.values() for term in terms]
        added = [*(term.json for term in (*self.required, *self.preferred)), *about_pods]
        total = sum(len(msgspec.json.encode(json)) + 1 for json in added)
        object.__setattr__(self, "json_bytes", total + _BYTES_OF_NAMES)


def rendered(template: Template, values: Mapping[str, Value]) -> Rendered:
    """values: of every parameter, checked. Raises InputError where a value does not fit the place it is meant for."""
    if isinstance(template, NodeSchedulerConfig):
        return Rendered(
            required=_required(template.required, values),
            preferred=tuple(term for term in _node_terms(template.preferred, values) if term.requirements),
        )
    lists = {
        PodTermList.AFFINITY: template.affinity.required,
        PodTermList.PREFERRED_AFFINITY: template.affinity.preferred,
        PodTermList.ANTI_AFFINITY: template.anti_affinity.required,
        PodTermList.PREFERRED_ANTI_AFFINITY: template.anti_affinity.preferred,
    }
    pod_terms = {where: _pod_terms(terms, values) for where, terms in lists.items()}
    return Rendered(pod_terms={where: terms for where, terms in pod_terms.items() if terms})


def expressions_json(requirements: Sequence[Requirement]) -> list[dict[str, Any]]:
    """matchExpressions as the API server would store them."""
    return [
        {"key": one.key, "operator": one.operator.value} | ({"values": list(one.values)} if one.values else {})
        for one in requirements
    ]


def _pod_term_json(term: PodTerm) -> dict[str, Any]:
    # Without requirements the selector is {} all the same: the API server refuses matchLabelKeys without one.
    json: dict[str, Any] = {"labelSelector": _selector_json(term.requirements)}
    if term.namespaces:
        json["namespaces"] = list(term.namespaces)
    json["topologyKey"] = term.topology_key
    if term.namespace_selector is not None:
        json["namespaceSelector"] = _selector_json(term.namespace_selector.requirements)
    if term.match_label_keys:
        json["matchLabelKeys"] = list(term.match_label_keys)
    return json


def _selector_json(requirements: Sequence[Requirement]) -> dict[str, Any]:
    return {"matchExpressions": expressions_json(requirements)} if requirements else {}


def _required(terms: Sequence[NodeTermTemplate], values: Mapping[str, Value]) -> tuple[NodeTerm, ...]:
    wanted = _node_terms(terms, values)
    if any(not term.requirements for term in wanted):
        return ()  # every node matches a term that asks for nothing
    possible = tuple(term for term in wanted if not contradictory(term.requirements))
    if wanted and not possible:
        raise InputError("spec.required: with these arguments no node could match any of the terms")
    return possible


def _node_terms(terms: Sequence[NodeTermTemplate], values: Mapping[str, Value]) -> tuple[NodeTerm, ...]:
    made = [
        NodeTerm(_requirements(term.requirements, values), _weight(term, values))
        for term in terms
        if _is_wanted(term, values)
    ]
    return tuple(dict.fromkeys(made))


def _pod_terms(terms: Sequence[PodTermTemplate], values: Mapping[str, Value]) -> tuple[PodTerm, ...]:
    made = []
    for term in terms:
        if not _is_wanted(term, values):
            continue
        requirements = _requirements(term.requirements, values)
        for requirement in requirements:
            if requirement.key in term.match_label_keys:
                raise InputError(f"key {requirement.key} is in matchLabelKeys, too: choose another argument")
        if not (requirements or term.match_label_keys):
            continue  # it would mean every pod
        made.append(
            PodTerm(
                requirements=requirements,
                topology_key=_topology_key(term, values),
                match_label_keys=term.match_label_keys,
                namespaces=_namespaces(term, values),
                namespace_selector=term.namespace_selector,
                weight=_weight(term, values),
            )
        )
    return tuple(dict.fromkeys(made))


def _is_wanted(term: NodeTermTemplate | PodTermTemplate, values: Mapping[str, Value]) -> bool:
    return not term.when or values[term.when] is True


def _weight(term: NodeTermTemplate | PodTermTemplate, values: Mapping[str, Value]) -> int:
    weight = values[term.weight_from] if term.weight_from else term.weight
    if not isinstance(weight, int) or not 0 <= weight <= 100:
        raise InputError(f"weight {weight}: must be 1 to 100")
    return weight


def _topology_key(term: PodTermTemplate, values: Mapping[str, Value]) -> str:
    key = str(values[term.topology_key_from]) if term.topology_key_from else term.topology_key
    if not is_qualified_name(key):
        raise InputError(f"topologyKey {key[:80]!r}: must be the key of a label")
    return key


def _namespaces(term: PodTermTemplate, values: Mapping[str, Value]) -> tuple[str, ...]:
    named = [*term.namespaces, *(text for name in term.namespaces_from for text in _texts(values[name]))]
    for namespace in named:
        if not is_namespace(namespace):
            raise InputError(f"namespaces: {namespace[:80]!r} must be the name of a namespace")
    if term.namespaces_from and not named and term.namespace_selector is None:
        # Kubernetes would read "no namespaces" as the pod's own, which the template did not ask for.
        raise InputError(f"namespaces: {', '.join(term.namespaces_from)} names none")
    return tuple(dict.fromkeys(named))


def _requirements(listed: Sequence[RequirementTemplate], values: Mapping[str, Value]) -> tuple[Requirement, ...]:
    made = [one for requirement in listed if (one := _requirement(requirement, values)) is not None]
    return tuple(dict.fromkeys(made))


def _requirement(template: RequirementTemplate, values: Mapping[str, Value]) -> Requirement | None:
    """None: NotIn without any value, which holds everywhere."""
    key = str(values[template.key_from]) if template.key_from else template.key
    if not is_qualified_name(key):
        raise InputError(f"key {key[:80]!r}: must be the key of a label")
    texts = (*template.values, *(text for name in template.values_from for text in _texts(values[name])))
    listed = tuple(dict.fromkeys(texts))
    for text in listed:
        if not is_label_value(text):
            raise InputError(f"value {text[:80]!r} for {key}: must be the value of a label")
    match template.operator:
        case Operator.IN if not listed:
            raise InputError(f"key {key}: In needs a value, {', '.join(template.values_from)} has none")
        case Operator.NOT_IN if not listed:
            return None
        case Operator.GT | Operator.LT if len(listed) != 1 or whole_number(listed[0]) is None:
            raise InputError(f"key {key}: {template.operator.value} needs one whole number")
        case _:
            return Requirement(key, template.operator, listed)


def _texts(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (str(value),)
