"""Every key of the settings: its default, what is allowed, and what its class says about it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from base.setting_group import Duration, SettingGroup
from forecast_scheduler.settings.document import SHARED, Settings, group_in

_SPANS: Final = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_BOUNDS: Final = {
    "ge": "at least",
    "gt": "above",
    "le": "at most",
    "lt": "below",
    "min_length": "at least",
    "max_length": "at most",
}


SHARED_BY: Final = {follower: shared for shared, followers in SHARED.items() for follower in followers}
"""Shared group by the group that repeats it."""


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One key, or a group of a command that has the keys of a shared group.

    key     : `schedule.queues[].name`; [] stands for each of a list, NAME for a name that the user chooses
    default : as people write it, "none" if there is none
    allowed : "" = all values of its type
    meaning : may have several lines
    """

    key: str
    default: str
    allowed: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Section:
    """A group with the keys that stand in it. path: of the group, "" of the document; meaning: of the group"""

    path: str
    meaning: str
    keys: tuple[KnownKey, ...]


@cache
def known_sections() -> tuple[Section, ...]:
    """Return the document, then its groups, each before those in it. The texts are read from source files: once."""
    return tuple(_sections(Settings, ""))


def _sections(group: type[SettingGroup], path: str) -> Iterator[Section]:
    prefix = f"{path}." if path else ""
    meaning = inspect.cleandoc(group.__doc__ or "").partition("\n\n")[0] if path else ""
    yield Section(path, meaning, tuple(_keys(group, prefix)))
    for name, field in group.model_fields.items():
        inner = group_in(field.annotation)
        if inner is not None and prefix + name not in SHARED_BY:
            yield from _sections(inner, prefix + name + _place(field.annotation))


def _keys(group: type[SettingGroup], prefix: str) -> Iterator[KnownKey]:
    texts = group.texts()
    for name, field in group.model_fields.items():
        key = prefix + name
        if key in SHARED_BY:
            yield from _repeated(key, field, texts.get(name, ""))
        elif not _is_group(field.annotation):
            yield KnownKey(key, _default(field), _allowed(field), texts.get(name, ""))


def _repeated(path: str, repeated: FieldInfo, text: str) -> Iterator[KnownKey]:
    """Of a group that has the keys of a shared one, and the keys of its own."""
    shared = SHARED_BY[path]
    group, original = group_in(repeated.annotation), group_in(Settings.model_fields[shared].annotation)
    assert group is not None and original is not None
    fields = original.model_fields
    own = {name: field for name, field in group.model_fields.items() if name not in fields}
    differing = {
        name: _default(field)
        for name, field in group.model_fields.items()
        if name in fields and field.default != fields[name].default
    }
    defaults = ", ".join(f"{name}: {value}" for name, value in differing.items())
    taken = SHARED[shared][path]
    of_shared = f", of which it takes over {', '.join(f'`{one}`' for one in taken)} only" if taken else ""
    example = next(iter(taken or fields))
    meaning = f"Overrides `{shared}`{of_shared}: `{path}.{example}`. {text}".strip()
    yield KnownKey(path, f"`{{{defaults}}}`" if defaults else f"`{shared}`", "", meaning)
    texts = group.texts()
    for name, field in own.items():
        yield KnownKey(f"{path}.{name}", _default(field), _allowed(field), texts.get(name, ""))


def _place(annotation: Any) -> str:
    """What stands between the key of a field and those of the group in it."""
    if _is_group(annotation):
        return ""
    return ".NAME" if get_origin(annotation) is dict else "[]"


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, SettingGroup)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return _value(value, field) if value not in (None, "", (), [], {}) else "none"


def _value(value: Any, field: FieldInfo) -> str:
    match value:
        case Enum():
            return str(value.value)
        case bool():
            return str(value).lower()
        case int() | float() if _is_duration(field):
            return _span(value)
        case int() | float() if value >= 2**20 and value % 2**20 == 0:
            return f"{value / 2**20:g} MiB"
        case int() | float():
            return f"{value:g}" if abs(value) < 100_000 else f"{value:,.0f}"
        case dict():
            return "`{" + ", ".join(f"{key}: {_value(one, field)}" for key, one in value.items()) + "}`"
        case (tuple(), *_):
            return _value(dict(value), field)
        case list() | tuple():
            return ", ".join(_value(one, field) for one in value)
    return str(value)


def _is_duration(field: FieldInfo) -> bool:
    return get_args(Duration)[1] in field.metadata


def _span(seconds: float) -> str:
    """The shortest way to write a duration."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    unit, size = next(((unit, size) for unit, size in _SPANS if seconds and seconds % size == 0), ("s", 1))
    return f"{seconds / size:g}{unit}" if seconds else "0"


def _allowed(field: FieldInfo) -> str:
    if choices := list(_choices(field.annotation)):
        return ", ".join(choices)
    bounds = {
        name: limit for part in _metadata(field) for name in _BOUNDS if (limit := getattr(part, name, None)) is not None
    }
    texts = {name: _value(limit, field) for name, limit in bounds.items()}
    for least, most in (("ge", "le"), ("min_length", "max_length")):
        if least in texts and most in texts:
            texts = {least: f"{texts[least]} to {texts[most]}"}
    if bounds == {"min_length": 1}:
        return "not empty"
    of = " characters" if "min_length" in texts and field.annotation is str else ""
    return ", ".join(text if " to " in text else f"{_BOUNDS[name]} {text}" for name, text in texts.items()) + of


def _metadata(field: FieldInfo) -> Iterator[Any]:
    """Also of the values of a list or mapping; a Field inside Annotated holds its own."""
    parts = [*field.metadata, *(one for part in get_args(field.annotation) for one in get_args(part)[1:])]
    for part in parts:
        yield from part.metadata if isinstance(part, FieldInfo) else [part]


def _choices(annotation: Any) -> Iterator[str]:
    """Of a closed set, also inside a list."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(one.value) for one in annotation)
    elif get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    elif get_origin(annotation) in (list, tuple, Annotated, Union, UnionType):
        for part in get_args(annotation):
            yield from _choices(part)
