"""What all groups of settings have in common, and the types of their fields, durations such as 1h30m among them."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Mapping
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue

from base.errors import InputError

# How people write how long something takes: 200ms, 30s, 5m, 1h30m, or a plain number of seconds.
#
# The way of Prometheus, without years and weeks (https://prometheus.io/docs/prometheus/latest/querying/basics/), and
# with fractions, as Go has them: 1.5h.

DURATION_EXAMPLES: Final = "200ms, 30s, 5m or 1h30m"

_LONGEST_TEXT: Final = 400
"""Characters: the largest number there is, written out, and some. A client that creates a pod can write more."""

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PART: Final = re.compile(rf"({_NUMBER.pattern})(ms|[smhd])")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")


def duration_seconds(text: str) -> float | None:
    """Seconds, at least 0 and finite; None = it is no duration."""
    if len(text) > _LONGEST_TEXT:
        return None
    if _NUMBER.fullmatch(text):
        seconds = float(text)
    elif _DURATION.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    else:
        return None
    return seconds if math.isfinite(seconds) else None


def _first_mistake(group: type[SettingGroup], error: ValidationError) -> str:
    mistake = error.errors()[0]
    key = ".".join(map(str, mistake["loc"]))
    if mistake["type"] == "extra_forbidden":
        return f"{group.__name__} has no setting {key!r}: it has {', '.join(group.model_fields)}"
    if mistake["type"] == "missing":
        return f"{group.__name__}: {key} is missing: give it"
    found = key and (f"{key}: " if isinstance(mistake["input"], Mapping) else f"{key} is {mistake['input']!r}: ")
    return f"{group.__name__}: {found}{what_is_allowed(mistake)}"


class SettingGroup(BaseModel):
    """Frozen. Refuses keys that it does not have. If code gives it a forbidden value, it raises InputError."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,  # `--help` needs the classes, not their validators: 0.1 s
        allow_inf_nan=False,
        # What was given may be a secret under a wrong name, and a traceback shows the error.
        hide_input_in_errors=True,
    )

    if not TYPE_CHECKING:  # type checkers see the fields as arguments

        def __init__(self, **given: Any) -> None:
            try:
                super().__init__(**given)
            except ValidationError as error:
                raise InputError(_first_mistake(type(self), error)) from error

        # Pydantic validates groups inside a document without __init__, and a mistake there keeps its whole path.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def texts(cls) -> dict[str, str]:
        """Return the text below each field, by its name.

        pydantic's own `use_attribute_docstrings` reads the source of each class when it is made: 0.2 s of every start.
        """
        found: dict[str, str] = {}
        for one in reversed(cls.__mro__):
            if issubclass(one, SettingGroup):
                found |= _texts_in(inspect.getsource(one))
        return {name: text for name, text in found.items() if name in cls.model_fields}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """See pydantic: the schema of the chart's values has these texts, too."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name, text in cls.texts().items():
            properties[name]["description"] = text
        return schema

    def replace(self, **values: Any) -> Self:
        """A copy with these values, checked."""
        return type(self)(**{**dict(self), **values})


def _texts_in(source: str) -> dict[str, str]:
    """Of a class: the string after each annotated name."""
    (tree,) = ast.parse(dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def what_is_allowed(mistake: Any) -> str:
    """What pydantic says about a value, as the second half of a sentence."""
    what = str(mistake["msg"]).removeprefix("Value error, ").replace("valid tuple", "valid list")
    return what[:1].lower() + what[1:]


def check_names(kind: str, names: list[str]) -> None:
    """Raises ValueError if two of a list have the same name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"each {kind} has a name of its own, {twice[0]!r} is given twice")


def _countries(value: Any) -> Any:
    """A list of countries as one text. YAML 1.1 reads the code NO, unquoted, as the truth value false."""
    if isinstance(value, list) and value and all(code is False or isinstance(code, str) for code in value):
        return ",".join("NO" if code is False else code for code in value)
    return "NO" if value is False else value


def _off(value: Any) -> Any:
    """YAML 1.1 reads `off`, unquoted, as the truth value false."""
    return "off" if value is False else value


def _seconds(value: Any) -> Any:
    """Seconds of "200ms", "30s", "5m", "1h30m" or a number."""
    if not isinstance(value, str):
        return value
    seconds = duration_seconds(value)
    if seconds is None:
        raise ValueError(f"write a duration such as {DURATION_EXAMPLES}")
    return seconds


Country = Annotated[str, BeforeValidator(_countries)]

Duration = Annotated[float, BeforeValidator(_seconds)]
"""Seconds, written as a number or in Prometheus' way."""

Off = BeforeValidator(_off)
"""For an Enum with the value "off"."""
