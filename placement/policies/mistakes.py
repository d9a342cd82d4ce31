"""What is wrong with a policy document, and where: one sentence that begins with the place, also for what pydantic
found.

    policies.batch.scores.weights.predicted_peek: there is no score 'predicted_peek': did you mean predicted_peak?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from base.errors import InputError

_LONGEST = 600  # bytes of what a document says are in the message; it goes into events, too

_LONGEST_VALUE = 80

_FORMER: Mapping[int | str, str] = {
    "rare_devices": "write cards: {protection: soft} or hard; which types are rare is node_rules.cards.rare_types",
}

_MUST_BE = {
    "string_type": "text",
    "float_type": "a number",
    "int_type": "a whole number",
    "dict_type": "a map",
    "model_type": "a map",
    "list_type": "a list",
}


class DocumentMistake(InputError):
    """The document cannot take effect. place: keys from the top, joined by dots; '' = the document as a whole."""

    def __init__(self, place: str, what: str) -> None:
        self.place, self.what = place, _shortened(what)
        super().__init__(f"{_shortened(place)}: {self.what}" if place else self.what)


@contextmanager
def blamed_on(place: str) -> Iterator[None]:
    """An InputError of what is done inside is a mistake at this place."""
    try:
        yield
    except DocumentMistake:
        raise
    except InputError as error:
        raise DocumentMistake(place, str(error)) from error


def way_out(name: str, known: Iterable[str]) -> str:
    """The name that was probably meant, else all there are."""
    names = list(known)
    if near := get_close_matches(name, names, n=1):
        return f"did you mean {near[0]}?"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"known are: {shown or 'none'}"


def _shortened(text: str) -> str:
    """One line that can be encoded, whatever the document says."""
    text = " ".join(text.encode(errors="replace").decode().split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def first_mistake(error: ValidationError, values: Any, document: type[BaseModel]) -> DocumentMistake:
    """The first in the order of the document's keys.

    values   : what was read
    document : the type it was read as
    """
    mistake = error.errors(include_url=False)[0]
    path = [part for part in mistake["loc"] if part != "[key]"]  # pydantic's sign for a mistake in the key of a map
    place, value = _place(path, values), mistake["input"]
    return DocumentMistake(place, _what(mistake["type"], mistake["msg"], value, _keys_at(document, path[:-1]), path))


def _what(kind: str, message: str, value: Any, keys: Sequence[str], path: Sequence[int | str]) -> str:
    if kind == "extra_forbidden" and path[-1] in _FORMER:
        return f"this key is gone: {_FORMER[path[-1]]}"
    if kind == "extra_forbidden":
        return f"there is no such key: {way_out(str(path[-1]), keys)}"
    if kind == "missing":
        return "this is missing"
    if kind == "too_short":
        return "this is empty: leave it out, or say something"
    if kind == "too_long":
        return message[:1].lower() + message[1:].replace(" after validation", "")
    if kind == "value_error":
        return message.removeprefix("Value error, ") + (_found(value) if isinstance(value, str) else "")
    if kind in _MUST_BE:
        quotes = ": put it in quotes" if kind == "string_type" and _is_scalar(value) else ""
        return f"this must be {_MUST_BE[kind]}{_found(value)}{quotes}"
    return f"{message.replace('Input should', 'this must', 1)}{_found(value)}"


def _place(path: Sequence[int | str], values: Any) -> str:
    """Entries of lists are counted from 1, as people do. Keys are shown as read: pydantic calls the key `yes` 1."""
    shown = []
    for step in path:
        if isinstance(values, list) and isinstance(step, int):
            shown.append(str(step + 1))
        else:
            keys = values if isinstance(values, dict) else ()
            shown.append(str(next((key for key in keys if key == step), step)))
        try:
            values = values[step]
        except (LookupError, TypeError):
            values = None
    return ".".join(shown)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or type(value).__name__ in ("date", "datetime")


def _found(value: Any) -> str:
    if isinstance(value, dict | list):
        return f", found a {'map' if isinstance(value, dict) else 'list'}"
    try:
        text = repr(value)
    except Exception:  # of a whole number of 5,000 digits, for instance
        text = f"a value of type {type(value).__name__}"
    return f", found {text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + '...'}"


def _keys_at(document: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """Keys that the part at a path may have."""
    part: Any = document
    for step in path:
        models = list(_models_in(part))
        if models and isinstance(step, str):
            fields = {(field.alias or name): field for name, field in models[0].model_fields.items()}
            if step in fields:
                part = fields[step].annotation
    models = list(_models_in(part))
    return [field.alias or name for name, field in models[0].model_fields.items()] if models else []


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Models that an annotation speaks of: those of `dict[str, Model] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for inner in get_args(annotation):
        yield from _models_in(inner)
