"""Arguments that a pod itself gives to the templates of its bindings, in an annotation:

forecast-scheduler.io/template-arguments: {"Threads": 4, "cart-evening/first": "slow"}

A name is that of a parameter, in every binding that means the pod, or BINDING/PARAMETER. A binding's own arguments are
fixed: a pod fills in what its binding leaves open. If anything is wrong with the values for a binding, that binding
takes none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from admission.templates.applied_bindings import Skipped, SkipReason
from admission.templates.parameters import value_problem
from admission.templates.template_objects import Parameter, ParameterType, Value
from admission.templates.template_set import Compiled
from base.errors import InputError
from kube.objects.objects import ANNOTATION_PREFIX

ARGUMENTS_ANNOTATION: Final = ANNOTATION_PREFIX + "template-arguments"

_LONGEST: Final = 1024
"""Characters. The values are in the record of each binding, too."""

_MOST_RENDERED: Final = 128
"""Bindings that are rendered anew for one pod."""

_Text = Annotated[str, Meta(max_length=253)]
_Number = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
_Texts = Annotated[list[_Text], Meta(max_length=32)]
_DECODER: Final = msgspec.json.Decoder(dict[str, _Text | _Number | bool | _Texts])
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")
_TRUTH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Given:
    """What the annotation comes to.

    bindings : with the pod's arguments where they fit
    refused  : bindings that take none of the pod's arguments, and why
    remarks  : sentences about what is of no binding
    """

    bindings: Sequence[Compiled]
    refused: tuple[Skipped, ...] = ()
    remarks: tuple[str, ...] = ()


def with_pod_arguments(bindings: Sequence[Compiled], annotations: Mapping[str, str]) -> Given:
    """The bindings that mean a pod, as the pod's annotation completes them. Never raises."""
    text = annotations.get(ARGUMENTS_ANNOTATION)
    if text is None:
        return Given(bindings)
    try:
        given = _read(text)
    except InputError as error:
        return Given(bindings, remarks=(f"{ARGUMENTS_ANNOTATION}: {error}",))
    made, refused, used, n_rendered = [], list[Skipped](), set[str](), 0
    for compiled in bindings:
        name = compiled.binding.name
        known = {one.name: one for one in compiled.template.parameters} if compiled.template is not None else {}
        wanted = {key.removeprefix(f"{name}/"): key for key in sorted(given, key=lambda key: "/" in key)}
        mine = {parameter: given[key] for parameter, key in wanted.items() if parameter in known}
        used |= {key for key in given if key.removeprefix(f"{name}/") in known}
        if mine:
            n_rendered += 1
            try:
                if n_rendered > _MOST_RENDERED:
                    raise InputError(f"{_MOST_RENDERED} bindings before it take arguments of the pod")
                compiled = _completed(compiled, mine, known)
            except InputError as error:
                message = f"{ARGUMENTS_ANNOTATION}: {error}; the binding takes no argument of the pod"
                refused.append(Skipped(name, SkipReason.ARGUMENTS, message))
        made.append(compiled)
    unused = sorted(given.keys() - used)
    templates = [one.template for one in bindings if one.template is not None]
    known_names = sorted({parameter.name for template in templates for parameter in template.parameters})
    remarks = tuple(
        f"{ARGUMENTS_ANNOTATION}: no template of the pod has a parameter {name[:80]!r}; "
        f"there are {', '.join(known_names[:8]) or 'none'}"
        for name in unused[:4]
    )
    return Given(made, tuple(refused), remarks)


def _read(text: str) -> Mapping[str, Value]:
    if len(text) > _LONGEST:
        raise InputError(f"has {len(text)} characters: {_LONGEST} are allowed")
    try:
        values = _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InputError(f'must be a JSON object such as {{"name": "value"}}: {str(error)[:200]}') from error
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _completed(compiled: Compiled, mine: Mapping[str, Value], known: Mapping[str, Parameter]) -> Compiled:
    """Raises InputError for the first argument that does not fit."""
    own, values = compiled.binding.arguments, {}
    for name, value in mine.items():
        value = _as_type(known[name].type, value)
        if name in own and own[name] != value:
            raise InputError(f"argument {name}: the binding sets it, and what a binding sets is fixed")
        if problem := value_problem(known[name], value):
            raise InputError(f"argument {name}: {problem}")
        values[name] = value
    made = compiled.with_arguments(values)
    if made.problem is not None:
        raise InputError(made.problem.message)
    return made


def _as_type(wanted: ParameterType, value: Value) -> Value:
    """Texts that stand for a number or a truth value, as values of annotations often are."""
    if not isinstance(value, str):
        return value
    if wanted is ParameterType.INTEGER and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    return _TRUTH.get(value, value) if wanted is ParameterType.BOOLEAN else value
