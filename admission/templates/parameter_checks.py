"""What the fields of a template demand of each other: values are taken from parameters that exist, of a fitting type.

The CEL rules in deploy/crds say the same to the API server; here it is said of objects from files, and from clusters
with an older schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from admission.templates.objects import (
    NodeSchedulerConfig,
    NodeTermTemplate,
    Parameter,
    ParameterType,
    PodTermTemplate,
    RequirementTemplate,
    Template,
)
from admission.templates.values import limits_problem
from base.errors import InputError
from kube.objects.constraints import Operator
from kube.objects.selectors import whole_number

_TEXT: Final = (ParameterType.STRING,)
_TEXTS: Final = (ParameterType.STRING, ParameterType.STRINGS)
_VALUES: Final = (ParameterType.STRING, ParameterType.STRINGS, ParameterType.INTEGER)
_NUMBER: Final = (ParameterType.INTEGER,)
_FLAG: Final = (ParameterType.BOOLEAN,)


def check_template(template: Template) -> None:
    """Raises InputError that names the field."""
    known: dict[str, Parameter] = {}
    for number, parameter in enumerate(template.parameters):
        path = f"spec.parameters[{number}]"
        if parameter.name in known:
            raise InputError(f"{path}.name: {parameter.name} is there twice")
        field, problem = limits_problem(parameter)
        if problem:
            raise InputError(f"{path}.{field}: {problem}")
        known[parameter.name] = parameter
    if not any(terms for _, terms in _lists(template)):
        raise InputError(f"spec: renders nothing: {_LISTS[isinstance(template, NodeSchedulerConfig)]} is needed")
    for path, terms in _lists(template):
        for number, term in enumerate(terms):
            _check_term(term, f"{path}[{number}]", known)


_LISTS: Final = {True: "required or preferred", False: "a term in podAffinity or podAntiAffinity"}


def _lists(template: Template) -> Iterator[tuple[str, Sequence[NodeTermTemplate | PodTermTemplate]]]:
    if isinstance(template, NodeSchedulerConfig):
        yield "spec.required", template.required
        yield "spec.preferred", template.preferred
    else:
        yield "spec.podAffinity.required", template.affinity.required
        yield "spec.podAffinity.preferred", template.affinity.preferred
        yield "spec.podAntiAffinity.required", template.anti_affinity.required
        yield "spec.podAntiAffinity.preferred", template.anti_affinity.preferred


def _check_term(term: NodeTermTemplate | PodTermTemplate, path: str, known: Mapping[str, Parameter]) -> None:
    _check_names([term.when], _FLAG, f"{path}.when", known)
    _check_names([term.weight_from], _NUMBER, f"{path}.weightFrom", known)
    if term.weight_from:
        weight = known[term.weight_from]
        if not (
            weight.minimum is not None and weight.minimum >= 1 and weight.maximum is not None and weight.maximum <= 100
        ):
            raise InputError(f"{path}.weightFrom: {weight.name} needs a minimum and a maximum within 1 and 100")
    if isinstance(term, PodTermTemplate):
        _check_names([term.topology_key_from], _TEXT, f"{path}.topologyKeyFrom", known)
        _check_names(term.namespaces_from, _TEXTS, f"{path}.namespacesFrom", known)
    for number, requirement in enumerate(term.requirements):
        _check_requirement(requirement, f"{path}.matchExpressions[{number}]", known)


def _check_requirement(requirement: RequirementTemplate, path: str, known: Mapping[str, Parameter]) -> None:
    compares = requirement.operator in (Operator.GT, Operator.LT)
    _check_names([requirement.key_from], _TEXT, f"{path}.keyFrom", known)
    _check_names(requirement.values_from, _NUMBER if compares else _VALUES, f"{path}.valuesFrom", known)
    if compares:
        for value in requirement.values:
            if whole_number(value) is None:
                raise InputError(
                    f"{path}.values: {value[:40]!r} is no whole number, which {requirement.operator.value} needs"
                )


def _check_names(
    names: Iterable[str], types: Sequence[ParameterType], path: str, known: Mapping[str, Parameter]
) -> None:
    for name in filter(None, names):
        wanted = " or ".join(one.value for one in types)
        if name not in known:
            raise InputError(f"{path}: there is no parameter {name}: it must name one of type {wanted}")
        if known[name].type not in types:
            raise InputError(f"{path}: parameter {name} is of type {known[name].type.value}: it must be {wanted}")
