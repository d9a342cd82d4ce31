"""Rewrites a document of an earlier version: keys under their new names, and once what commands have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forecast_scheduler.settings.document import SHARED, Settings
from forecast_scheduler.settings.former_key_lookup import FormerKey, former_keys_in, parts_of
from forecast_scheduler.settings.former_keys import FORMER, REMOVED, WIDER

_FILLED = ("[]", "NAME")


@dataclass(frozen=True, slots=True)
class Migration:
    """A document of this version.

    values  : equal to those given if they had no key of an earlier version
    removed : keys that exist no more
    notes   : sentences about values that found another one in their new place, or count for more there
    """

    values: dict[str, Any]
    removed: tuple[FormerKey, ...]
    notes: tuple[str, ...]


def migrated(values: Mapping[str, Any]) -> Migration:
    """Return the document with the keys of this version; every setting that still exists keeps its value.

    What most commands set alike moves to the group that they share; the others get what they had, also their default.
    """
    new: dict[str, Any] = _copied(values)
    removed: list[FormerKey] = []
    notes: list[str] = []
    while found := former_keys_in(new):
        for former in found:
            value = _taken(new, former.path)
            if former.name in REMOVED:
                removed.append(former)
            else:
                target = _target(former)
                notes += _put(new, target, value, former.key, ".".join(map(str, target)))
                notes += [str(former)] if former.name in WIDER else []
    if new != values:
        _share(new)
    first = {shared: new[shared] for shared in SHARED if shared in new and shared not in values}
    return Migration(first | new, tuple(removed), tuple(notes))


def _copied(values: Any) -> Any:
    """Without aliases: each place has values of its own."""
    if isinstance(values, Mapping):
        return {key: _copied(value) for key, value in values.items()}
    return [_copied(one) for one in values] if isinstance(values, list) else values


def _taken(values: Any, path: tuple[str | int, ...]) -> Any:
    """Remove and return what stands there, with groups that are empty then."""
    key, *below = path
    if not below:
        return values.pop(key)
    value = _taken(values[key], tuple(below))
    if values[key] == {}:
        del values[key]
    return value


def _target(former: FormerKey) -> list[str | int]:
    """Where the value belongs: places in lists and chosen names are those of the former key."""
    chosen = (there for part, there in zip(parts_of(former.name), former.path, strict=True) if part in _FILLED)
    return [next(chosen) if part in _FILLED else part for part in parts_of(FORMER[former.name])]


def _put(values: Any, path: list[str | int], value: Any, former: str, now: str) -> Iterator[str]:
    """Put the value there; yield a sentence for each that finds another one. former, now: keys that had and have it"""
    at = values
    for number, key in enumerate(path):
        is_last = number == len(path) - 1
        if isinstance(at, dict):
            inner = at.setdefault(key, value if is_last else {})
        else:
            inner = at[key] if isinstance(at, list) and isinstance(key, int) and key < len(at) else None
        if is_last and isinstance(inner, dict) and isinstance(value, dict):
            for below, one in value.items():
                yield from _put(inner, [below], one, f"{former}.{below}", f"{now}.{below}")
        elif is_last and inner != value:
            yield f"`{former}` is left out: `{now}` has another value, decide which of them holds"
        at = inner


def _share(new: dict[str, Any]) -> None:
    """Move what more than half of the commands set alike to the group that they share."""
    defaults = Settings().model_dump(mode="json")
    for shared, followers in SHARED.items():
        group = new.get(shared, {})
        for key in defaults[shared] if isinstance(group, dict) else ():
            takers = [path.split(".") for path, keys in followers.items() if keys is None or key in keys]
            set_to = [at[key] for path in takers if key in (at := _group_at(new, path))]
            common = max(set_to, key=set_to.count, default=None)
            if key in group or 2 * set_to.count(common) <= len(takers):
                continue
            for path in takers:
                if key not in _group_at(new, path):
                    if _group_at(defaults, path)[key] != common:
                        list(_put(new, [*path, key], _group_at(defaults, path)[key], "", ""))
                elif _group_at(new, path)[key] == common:
                    _taken(new, (*path, key))
            new.setdefault(shared, {})[key] = common


def _group_at(values: Any, path: list[str]) -> Mapping[str, Any]:
    """Return the group there; empty if there is none."""
    for key in path:
        values = values.get(key, {}) if isinstance(values, Mapping) else {}
    return values if isinstance(values, Mapping) else {}
