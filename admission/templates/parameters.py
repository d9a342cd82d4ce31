"""Is a value one that a parameter takes, patterns included, and do the fields of a template take their values from
parameters that exist, of a fitting type?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from admission.templates.template_objects import (
    NodeSchedulerConfig,
    NodeTermTemplate,
    Parameter,
    ParameterType,
    PodTermTemplate,
    RequirementTemplate,
    Template,
    Value,
)
from base.errors import InputError
from kube.objects.constraints import Operator
from kube.objects.labels import whole_number

# Patterns that a parameter's text must match as a whole: a small language that means the same to Python and to CEL.
#
# The API server checks defaults with RE2, which takes linear time; Python's `re` tries combinations, so that
# `(a*)*b` would stop everything. What both read alike, and `re` decides quickly, is allowed:
#
#     letters, digits, _ / - . \.  [classes]  (groups)  a|b  * + ? {n} {n,} {n,m}
#     at most 3 of * + {n,m} ? | together, of them 2 of * + {n,m}; at most 4 groups
#     a group may be followed by ? but not repeated
#
# Each of them multiplies the ways in which a text can be tried: two repetitions try some 30,000 places in the longest
# text there is (253 characters), one of ? or | twice as many. That is a millisecond.

_LANGUAGE: Final = re.compile(
    r"(?:[A-Za-z0-9_/.|-]|\\\.|\(|\)|\[\^?[A-Za-z0-9_./-]+\]|[*+?]|\{[0-9]{1,2}(?:,(?:[0-9]{1,2})?)?\})*"
)

_REPEATED: Final = re.compile(r"[*+?}][*+?{]|\)[*+{]|\(\?|--")
_MOST_CHOICES: Final = 3
_MOST_REPETITIONS: Final = 2
_MOST_GROUPS: Final = 4

NO_LIMIT: Final = 32
"""Strings in a list, where a parameter sets no limit of its own."""

_TYPES: Final = {ParameterType.STRING: str, ParameterType.BOOLEAN: bool, ParameterType.STRINGS: tuple}
_TEXT: Final = (ParameterType.STRING,)
_TEXTS: Final = (ParameterType.STRING, ParameterType.STRINGS)
_VALUES: Final = (ParameterType.STRING, ParameterType.STRINGS, ParameterType.INTEGER)
_FLAG: Final = (ParameterType.BOOLEAN,)


def pattern_problem(pattern: str) -> str:
    """Why a pattern is not allowed; '' = it is."""
    if _LANGUAGE.fullmatch(pattern) is None or _REPEATED.search(pattern):
        return (
            r"may hold letters, digits, _ / - . \. [classes], (groups) that are not repeated, | and one of * + ? {n,m} "
            "after a character"
        )
    if (
        len(re.findall(r"[*+{?|]", pattern)) > _MOST_CHOICES
        or len(re.findall(r"[*+{]", pattern)) > _MOST_REPETITIONS
        or pattern.count("(") > _MOST_GROUPS
    ):
        return "may hold at most 3 of * + {n,m} ? | together, 2 of * + {n,m}, and 4 groups"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"is no regular expression: {error}"
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text does. Only for patterns without a problem; no pattern matches everything."""
    return not pattern or _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def limits_problem(parameter: Parameter) -> tuple[str, str]:
    """What is wrong with a parameter's own limits: field below the parameter and reason; ('', '') = nothing."""
    block = parameter.type.value
    if parameter.pattern and (problem := pattern_problem(parameter.pattern)):
        return f"{block}.pattern", problem
    if parameter.minimum is not None and parameter.maximum is not None and parameter.minimum > parameter.maximum:
        return f"{block}.minimum", f"{parameter.minimum} is above maximum {parameter.maximum}"
    if parameter.min_items > parameter.max_items:
        return f"{block}.minItems", f"{parameter.min_items} is above maxItems {parameter.max_items}"
    if parameter.default is not None and (problem := value_problem(parameter, parameter.default)):
        return f"{block}.default", problem
    return "", ""


def value_problem(parameter: Parameter, value: Value) -> str:
    """Why a parameter does not take a value; '' = it does. The parameter's limits must be without a problem."""
    if not _has_type(parameter.type, value):
        return f"must be given as {parameter.type.value}"
    if isinstance(value, tuple):
        if not parameter.min_items <= len(value) <= parameter.max_items:
            return f"has {len(value)} strings: {parameter.min_items} to {parameter.max_items} are allowed"
        return next((problem for text in value if (problem := _text_problem(parameter, text))), "")
    if isinstance(value, str):
        return _text_problem(parameter, value)
    if isinstance(value, bool):
        return ""
    if parameter.minimum is not None and value < parameter.minimum:
        return f"{value} is below minimum {parameter.minimum}"
    if parameter.maximum is not None and value > parameter.maximum:
        return f"{value} is above maximum {parameter.maximum}"
    return ""


def _has_type(wanted: ParameterType, value: Value) -> bool:
    if wanted is ParameterType.INTEGER:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, _TYPES[wanted])


def _text_problem(parameter: Parameter, text: str) -> str:
    if parameter.enum and text not in parameter.enum:
        return f"{text[:63]!r} is none of {', '.join(parameter.enum[:8])}{', ...' if len(parameter.enum) > 8 else ''}"
    if not matches(parameter.pattern, text):
        return f"{text[:63]!r} does not match {parameter.pattern}"
    return ""


# What the fields of a template demand of each other: values are taken from parameters that exist, of a fitting type.
#
# The CEL rules in deploy/crds say the same to the API server; here it is said of objects from files, and from clusters
# with an older schema.

_NUMBER: Final = (ParameterType.INTEGER,)


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
