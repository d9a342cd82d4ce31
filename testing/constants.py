"""Other values for the constants of options classes, which no settings document changes: for tests and benchmarks.

In one process a test takes `with_constants(options, name=value)`. A command in a process of its own is started by
ScorerProcess: a test writes constants among its settings, under the path that they would have in the document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import new_class
from typing import Any, ClassVar, TypeVar

from base.setting_group import SettingGroup, duration_seconds
from forecast_scheduler.settings.document import Settings, group_in

Options = TypeVar("Options", bound=SettingGroup)

Constants = dict[str, dict[str, Any]]
"""Values by name, by `MODULE:CLASS`."""


def with_constants(options: Options, **values: Any) -> Options:
    """Return the same options with other constants, as a subclass would have them, and other settings.

    values: durations in seconds. KeyError: it has no such constant
    """
    made = type(options)
    settings = {name: values.pop(name) for name in list(values) if name in made.model_fields}
    for name in values:
        if name not in made.__class_vars__:
            raise KeyError(f"{made.__name__} has no constant {name!r}")
    if not values:
        return options.replace(**settings)
    annotations = dict.fromkeys(values, ClassVar[Any])
    body = {"__module__": made.__module__, "__annotations__": annotations, **values}
    other: type[Options] = new_class(made.__name__, (made,), exec_body=lambda space: space.update(body))
    return other(**{**dict(options), **settings})


def split_constants(settings: Mapping[str, Any]) -> tuple[dict[str, Any], Constants]:
    """Return the document that is left, and the constants that were among its keys."""
    constants: Constants = {}
    return _split(settings, Settings, constants), constants


def _split(values: Mapping[str, Any], group: type[SettingGroup], constants: Constants) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for key, value in values.items():
        inner = group_in(group.model_fields[key].annotation) if key in group.model_fields else None
        if key in group.__class_vars__:
            owner = next(one for one in group.__mro__ if key in vars(one))  # other groups may have it from there, too
            constants.setdefault(f"{owner.__module__}:{owner.__name__}", {})[key] = _seconds(value)
        elif inner is None:
            left[key] = value
        elif isinstance(value, Mapping):
            left[key] = _split(value, inner, constants)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            left[key] = [_split(one, inner, constants) for one in value]
        else:
            left[key] = value
    return left


def _seconds(value: Any) -> Any:
    """Durations as numbers, also in a constant that is a dataclass."""
    if isinstance(value, Mapping):
        return {name: _seconds(one) for name, one in value.items()}
    return duration_seconds(value) if isinstance(value, str) else value


def set_constants(constants: Constants) -> None:
    """Set them for this process."""
    for place, values in constants.items():
        module, _, name = place.partition(":")
        group = getattr(import_module(module), name)
        for key, value in values.items():
            setattr(group, key, replace(getattr(group, key), **value) if isinstance(value, Mapping) else value)


def main() -> None:
    """Run `forecast-scheduler` with other constants: their JSON comes first, then the command's arguments."""
    set_constants(json.loads(sys.argv.pop(1)))
    from forecast_scheduler.cli import main as command  # imports what reads constants

    command()


if __name__ == "__main__":
    main()
