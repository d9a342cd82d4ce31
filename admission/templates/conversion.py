"""JSON structures of the custom resources (wire.py) -> objects.py.

What a term demands of its own fields is checked here; what it demands of the parameters in parameters.py. Errors
name the field: spec.parameters[0].string.default: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeVar

from admission.templates import wire
from admission.templates.parameters import NO_LIMIT
from admission.templates.template_objects import (
    ConflictRule,
    NodeTermTemplate,
    OwnerCondition,
    Parameter,
    ParameterType,
    PodConditions,
    PodTerms,
    PodTermTemplate,
    RequirementTemplate,
    TemplateKind,
    TemplateReference,
    Value,
)
from base.errors import InputError
from kube.decoding import wire_scheduling
from kube.decoding.constraint_decoding import label_selector
from kube.objects.constraints import LabelSelector, Operator

T = TypeVar("T")
J = TypeVar("J")
E = TypeVar("E", bound=Enum)

# No DaemonSet: its controller names the node of each pod, and such pods do not reach the webhook as it is shipped.
OWNER_KINDS: Final = (
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "Rollout",
)
_SELECTING: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def parameters(listed: Sequence[wire.ParameterJson] | None) -> tuple[Parameter, ...]:
    """spec.parameters. Raises InputError."""
    return _each(listed, "spec.parameters", _parameter)


def node_terms(
    listed: Sequence[wire.TemplateNodeTermJson] | None, path: str, *, weighted: bool
) -> tuple[NodeTermTemplate, ...]:
    """spec.required or spec.preferred of a NodeSchedulerConfig. Raises InputError."""

    def term(one: wire.TemplateNodeTermJson, path: str) -> NodeTermTemplate:
        _check_weight(one.weight, one.weight_from, path, weighted=weighted)
        return NodeTermTemplate(
            requirements=_each(one.match_expressions, f"{path}.matchExpressions", _requirement),
            when=one.when or "",
            weight=one.weight or 0,
            weight_from=one.weight_from or "",
        )

    return _each(listed, path, term)


def pod_terms(terms: wire.PodTermsJson | None, path: str) -> PodTerms:
    """spec.podAffinity or spec.podAntiAffinity. Raises InputError."""
    if terms is None:
        return PodTerms()
    return PodTerms(
        _each(terms.required, f"{path}.required", lambda one, where: _pod_term(one, where, weighted=False)),
        _each(terms.preferred, f"{path}.preferred", lambda one, where: _pod_term(one, where, weighted=True)),
    )


def template_reference(reference: wire.ReferenceJson) -> TemplateReference:
    """spec.template of a binding. Raises InputError."""
    return TemplateReference(_one_of(TemplateKind, reference.kind, "spec.template.kind"), reference.name)


def conflict_rule(text: str) -> ConflictRule:
    """spec.onConflict of a binding. Raises InputError."""
    return _one_of(ConflictRule, text, "spec.onConflict")


def argument(one: wire.ArgumentJson, path: str) -> Value:
    """The value of spec.arguments[]. Raises InputError."""
    given: list[Value] = [value for value in (one.string, one.integer, one.boolean) if value is not None]
    given += [] if one.strings is None else [tuple(one.strings)]
    if len(given) != 1:
        raise InputError(f"{path}: has {len(given)} values: give exactly one of string, integer, boolean, strings")
    return given[0]


def pod_conditions(pods: wire.PodsJson) -> PodConditions:
    """spec.pods of a binding. Raises InputError."""
    path = "spec.pods"
    owner = None
    if pods.owner is not None:
        if pods.owner.kind not in OWNER_KINDS:
            raise InputError(f"{path}.owner.kind: is {pods.owner.kind[:40]!r}: must be one of {', '.join(OWNER_KINDS)}")
        owner = OwnerCondition(pods.owner.kind, pods.owner.name or "")
    conditions = PodConditions(
        namespaces=tuple(pods.namespaces or ()),
        namespace_selector=_selector(pods.namespace_selector, f"{path}.namespaceSelector"),
        selector=_selector(pods.selector, f"{path}.selector"),
        owner=owner,
        annotations=dict(pods.annotations or {}),
    )
    if conditions == PodConditions():
        raise InputError(
            f"{path}: at least one of namespaces, namespaceSelector, selector, owner, annotations is needed"
        )
    return conditions


def _parameter(one: wire.ParameterJson, path: str) -> Parameter:
    blocks = {
        ParameterType.STRING: one.string,
        ParameterType.INTEGER: one.integer,
        ParameterType.BOOLEAN: one.boolean,
        ParameterType.STRINGS: one.strings,
    }
    given = [parameter_type for parameter_type, block in blocks.items() if block is not None]
    if len(given) != 1:
        raise InputError(f"{path}: has {len(given)} types: give exactly one of string, integer, boolean, strings")
    if one.string is not None:
        text = one.string
        return Parameter(one.name, given[0], text.default, tuple(text.enum or ()), text.pattern or "")
    if one.strings is not None:
        texts = one.strings
        return Parameter(
            name=one.name,
            type=given[0],
            default=None if texts.default is None else tuple(texts.default),
            enum=tuple(texts.enum or ()),
            pattern=texts.pattern or "",
            min_items=texts.min_items or 0,
            max_items=NO_LIMIT if texts.max_items is None else texts.max_items,
        )
    if one.integer is not None:
        number = one.integer
        return Parameter(one.name, given[0], number.default, minimum=number.minimum, maximum=number.maximum)
    return Parameter(one.name, given[0], None if one.boolean is None else one.boolean.default)


def _requirement(one: wire.TemplateRequirementJson, path: str) -> RequirementTemplate:
    operator = _one_of(Operator, one.operator, f"{path}.operator")
    if (one.key is None) == (one.key_from is None):
        raise InputError(f"{path}.key: exactly one of key and keyFrom is needed")
    n_given = len(one.values or ()) + len(one.values_from or ())
    match operator:
        case Operator.IN | Operator.NOT_IN if not n_given:
            raise InputError(f"{path}.values: operator {operator.value} needs values or valuesFrom")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST if n_given:
            raise InputError(f"{path}.values: operator {operator.value} takes neither values nor valuesFrom")
        case Operator.GT | Operator.LT if n_given != 1:
            raise InputError(
                f"{path}.values: operator {operator.value} needs exactly one number in values or valuesFrom"
            )
        case _:
            pass
    return RequirementTemplate(
        operator=operator,
        key=one.key or "",
        key_from=one.key_from or "",
        values=tuple(one.values or ()),
        values_from=tuple(one.values_from or ()),
    )


def _pod_term(one: wire.TemplatePodTermJson, path: str, *, weighted: bool) -> PodTermTemplate:
    _check_weight(one.weight, one.weight_from, path, weighted=weighted)
    if (one.topology_key is None) == (one.topology_key_from is None):
        raise InputError(f"{path}.topologyKey: exactly one of topologyKey and topologyKeyFrom is needed")
    if not (one.match_expressions or one.match_label_keys):
        raise InputError(
            f"{path}.matchExpressions: matchExpressions or matchLabelKeys is needed, else all pods are meant"
        )
    requirements = _each(one.match_expressions, f"{path}.matchExpressions", _requirement)
    for number, requirement in enumerate(requirements):
        where = f"{path}.matchExpressions[{number}]"
        if requirement.operator.value not in _SELECTING:
            raise InputError(f"{where}.operator: {requirement.operator.value} compares labels of nodes, not of pods")
        if requirement.key in (one.match_label_keys or ()):
            raise InputError(f"{where}.key: {requirement.key} is in matchLabelKeys, too: name it once")
    return PodTermTemplate(
        requirements=requirements,
        topology_key=one.topology_key or "",
        topology_key_from=one.topology_key_from or "",
        match_label_keys=tuple(one.match_label_keys or ()),
        namespaces=tuple(one.namespaces or ()),
        namespaces_from=tuple(one.namespaces_from or ()),
        namespace_selector=_selector(one.namespace_selector, f"{path}.namespaceSelector"),
        when=one.when or "",
        weight=one.weight or 0,
        weight_from=one.weight_from or "",
    )


def _check_weight(weight: int | None, weight_from: str | None, path: str, *, weighted: bool) -> None:
    n_given = (weight is not None) + (weight_from is not None)
    if weighted and n_given != 1:
        raise InputError(f"{path}.weight: exactly one of weight and weightFrom is needed")
    if not weighted and n_given:
        raise InputError(f"{path}.weight: only preferred terms have a weight")


def _selector(selector: wire.TemplateSelectorJson | None, path: str) -> LabelSelector | None:
    if selector is None:
        return None
    for number, one in enumerate(selector.match_expressions or ()):
        where = f"{path}.matchExpressions[{number}]"
        if one.operator not in _SELECTING:
            raise InputError(f"{where}.operator: is {one.operator[:40]!r}: must be one of {', '.join(_SELECTING)}")
        if bool(one.values) != (one.operator in ("In", "NotIn")):
            raise InputError(f"{where}.values: In and NotIn need values, Exists and DoesNotExist take none")
    return label_selector(
        wire_scheduling.LabelSelectorJson(
            dict(selector.match_labels or {}),
            [
                wire_scheduling.RequirementJson(one.key, one.operator, one.values)
                for one in selector.match_expressions or ()
            ],
        )
    )


def _one_of(closed: type[E], text: str, path: str) -> E:
    try:
        return closed(text)
    except ValueError:
        known = ", ".join(str(one.value) for one in closed)
        raise InputError(f"{path}: is {text[:40]!r}: must be one of {known}") from None


def _each(listed: Sequence[J] | None, path: str, make: Callable[[J, str], T]) -> tuple[T, ...]:
    return tuple(make(one, f"{path}[{number}]") for number, one in enumerate(listed or ()))
