"""Finds the keys of earlier versions in a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from forecast_scheduler.settings.former_keys import FORMER, REMOVED, WIDER

_END: Final = None
"""Key in a tree of keys under which the former key that ends there stands. Text is a part of a key."""


@dataclass(frozen=True, slots=True)
class FormerKey:
    """A key of an earlier version that a document has."""

    path: tuple[str | int, ...]
    """Where it stands: keys, and places in lists."""

    name: str
    """Its name in FORMER or REMOVED."""

    @property
    def key(self) -> str:
        """Return the key as the document has it."""
        return ".".join(map(str, self.path))

    def __str__(self) -> str:
        if self.name in FORMER:
            wider = f", {WIDER[self.name]}" if self.name in WIDER else ""
            return f"`{self.key}` is `{FORMER[self.name]}` now{wider}"
        return f"`{self.key}` is gone: {REMOVED[self.name]}"


def former_keys_in(values: Mapping[str, Any]) -> list[FormerKey]:
    """Return the keys of earlier versions in a document, those below a group before the group itself."""
    return list(_found(values, _tree(), ()))


def parts_of(name: str) -> list[str]:
    """Return what a key in FORMER or REMOVED is made of; `[]` is a part of its own."""
    return name.replace("[]", ".[]").split(".")


def _tree() -> dict[str | None, Any]:
    tree: dict[str | None, Any] = {}
    for name in (*FORMER, *REMOVED):
        place = tree
        for part in parts_of(name):
            place = place.setdefault(part, {})
        place[_END] = name
    return tree


def _found(values: Any, tree: Mapping[str | None, Any], path: tuple[str | int, ...]) -> Iterator[FormerKey]:
    if isinstance(values, list):
        for place, one in enumerate(values):
            yield from _found(one, tree.get("[]", {}), (*path, place))
    elif isinstance(values, Mapping):
        for key, value in values.items():
            if not isinstance(key, str):
                continue  # it is refused as any unknown key
            below = tree.get(key) or tree.get("NAME") or {}
            inner = list(_found(value, below, (*path, key)))
            yield from inner
            named = {one.path[len(path) + 1] for one in inner}
            if _END in below and not (isinstance(value, Mapping) and value and named >= set(value)):
                yield FormerKey((*path, key), below[_END])
