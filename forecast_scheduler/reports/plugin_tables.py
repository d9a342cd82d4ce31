"""What plugins of other packages do and which settings they have, for people and as figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from base.setting_group import SettingGroup
from placement.guarded_plugin import points_of_plugin
from placement.plugin_loading import installed_plugins, plugin_class, used_plugins
from placement.plugin_options import PluginOptions


def described(name: str, options: PluginOptions | None) -> dict[str, Any]:
    """Load one plugin. options: None = the settings do not name it. Raises InputError."""
    loaded = plugin_class(name)
    if options is not None:
        used_plugins({name: options})  # its settings are right
    (entry,) = (one for one in installed_plugins() if one.name == name)
    return {
        "name": name,
        "plugin": loaded.name,
        "package": _package(entry),
        "points": list(points_of_plugin(loaded)),
        "profiles": [] if options is None else options.profiles,
        "on_error": loaded.on_error,
        "settings": [_setting(name, loaded.settings_class, key) for key in loaded.settings_class.model_fields],
    }


def plugin_lines(figures: Sequence[Mapping[str, Any]], others: Sequence[EntryPoint]) -> Iterator[str]:
    """A paragraph for each plugin that is described, and a line for each other one."""
    for one in figures:
        where = ", ".join(one["profiles"]) or "only where a policy names it"
        yield f"{one['name']} ({one['package']}): {one['plugin']}, {', '.join(one['points'])}; counts for: {where}"
        for setting in one["settings"]:
            yield f"  {setting['key']} = {setting['default']}  {setting['meaning']}".rstrip()
    for entry in others:
        yield f"{entry.name} ({_package(entry)}): not loaded, the settings do not name it"
    if not figures and not others:
        yield "no plugins are installed: docs/extend/plugins.md builds one"


def _setting(name: str, model: type[BaseModel], key: str) -> dict[str, Any]:
    field: FieldInfo = model.model_fields[key]
    texts = model.texts() if issubclass(model, SettingGroup) else {}
    default = "required" if field.is_required() else field.get_default(call_default_factory=True)
    meaning = " ".join((field.description or texts.get(key, "")).split())
    return {"key": f"plugins.{name}.settings.{key}", "default": default, "meaning": meaning}


def _package(entry: EntryPoint) -> str:
    return "unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
