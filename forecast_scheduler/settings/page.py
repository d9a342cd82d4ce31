"""Writes docs/use/settings.md: every setting with its default, what is allowed, and what its class says about it.

python -m forecast_scheduler.settings.page
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from base.setting_group import Duration, SettingGroup
from forecast_scheduler.settings.document import Settings

PAGE: Final = Path(__file__).parents[2] / "docs" / "use" / "settings.md"

_HEAD: Final = """# Settings

`python -m forecast_scheduler.settings.page` writes this page from the settings classes. Change the text there.

From weakest to strongest: defaults, the file of `--config` (or of `FORECAST_SCHEDULER_CONFIG`), environment variables,
options of the command. A key `replay.days` is `FORECAST_SCHEDULER_REPLAY__DAYS` in the environment. An unknown key is
refused wherever it stands. A duration is a number of seconds, or text such as `200ms`, `30s`, `5m`, `1h30m` or `2d`.
command-line.md has an example of a file.
"""

_SPANS: Final = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_BOUNDS: Final = {
    "ge": "at least",
    "gt": "above",
    "le": "at most",
    "lt": "below",
    "min_length": "at least",
    "max_length": "at most",
}


def settings_page() -> str:
    """Return docs/use/settings.md as its text is by the classes now."""
    return "\n".join([_HEAD, *_section(Settings, "")])


def _section(group: type[SettingGroup], path: str) -> Iterator[str]:
    """The fields of a group, then the groups in it. path: of the group, "" of the document."""
    prefix = f"{path}." if path else ""
    texts = group.texts()
    inner = {name: _group_of(field.annotation) for name, field in group.model_fields.items()}
    rows = [
        f"| `{prefix}{name}` | {_default(field)} | {_allowed(field)} | {_cell(texts.get(name, ''))} |"
        for name, field in group.model_fields.items()
        if not _is_group(field.annotation)
    ]
    if path:
        yield f"## {path}\n"
        yield f"{_cell(inspect.cleandoc(group.__doc__ or '').partition(chr(10) * 2)[0])}\n"
    if rows:
        yield "\n".join(["| key | default | allowed | meaning |", "|---|---|---|---|", *rows]) + "\n"
    for name, one in inner.items():
        if one is not None:
            yield from _section(one, prefix + name + _place(group.model_fields[name].annotation))


def _place(annotation: Any) -> str:
    """What stands between the key of a field and those of the group in it."""
    if _is_group(annotation):
        return ""
    return ".NAME" if get_origin(annotation) is dict else "[]"


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, SettingGroup)


def _group_of(annotation: Any) -> type[SettingGroup] | None:
    """The group that a field holds, or holds a list of."""
    if _is_group(annotation):
        found: type[SettingGroup] = annotation
        return found
    return next((one for part in get_args(annotation) if (one := _group_of(part))), None)


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


def _cell(text: str) -> str:
    """One line, in which pages are links."""
    line = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"\bdocs/([\w-]+\.md)", r"[\1](\1)", line)


if __name__ == "__main__":
    PAGE.write_text(settings_page(), encoding="utf-8")
