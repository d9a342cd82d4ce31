"""Arguments of a binding against the parameters of its template -> a value for every parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from admission.templates.objects import Parameter, Value
from admission.templates.values import value_problem
from forecast.errors import InputError


def values_of(parameters: Sequence[Parameter], arguments: Mapping[str, Value]) -> dict[str, Value]:
    """By name of the parameter. Raises InputError for arguments that are unknown, missing, or not what is allowed."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in arguments:
        if name not in known:
            raise InputError(
                f"argument {name}: the template has no such parameter; it has {', '.join(sorted(known)) or 'none'}"
            )
    values: dict[str, Value] = {}
    for name, parameter in known.items():
        value = arguments.get(name, parameter.default)
        if value is None:
            raise InputError(
                f"argument {name}: is missing: the parameter has no default; "
                "give it here or in an annotation of the pod"
            )
        if problem := value_problem(parameter, value):
            raise InputError(f"argument {name}: {problem}")
        values[name] = value
    return values
