"""Is a value one that a parameter takes? Of defaults and arguments alike."""

from __future__ import annotations

from typing import Final

from admission.templates.objects import Parameter, ParameterType, Value
from admission.templates.patterns import matches, pattern_problem

NO_LIMIT: Final = 32
"""Strings in a list, where a parameter sets no limit of its own."""

_TYPES: Final = {ParameterType.STRING: str, ParameterType.BOOLEAN: bool, ParameterType.STRINGS: tuple}


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
