"""Plugins of other packages that the settings name: found by entry point, made once per process.

    settings `plugins` --> entry point of group forecast_scheduler.plugins --> class --> GuardedPlugin

An entry point that no setting names is not loaded: installing a package changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from base.errors import InputError
from base.setting_group import what_is_allowed
from placement.filters.filter import Filter
from placement.guarded_plugin import GuardedPlugin, PluginCollector, PluginPostBind, PluginPreBind, points_of_plugin
from placement.node_plugin import NodePlugin
from placement.plugin_options import PluginOptions
from placement.policies.filter_choice import FILTER_NAMES
from placement.policies.mistakes import way_out
from placement.scores.node_score import NodeScore
from placement.scores.plugin_weights import FURTHER_PLUGINS, PLUGIN_WEIGHTS

GROUP: Final = "forecast_scheduler.plugins"
"""Of entry points."""

_OURS: Final = frozenset((*FILTER_NAMES, *PLUGIN_WEIGHTS, *FURTHER_PLUGINS))

_made: Final[dict[tuple[str, str], GuardedPlugin]] = {}


@dataclass(frozen=True, slots=True)
class UsedPlugin:
    """A plugin, and what it counts for unless a policy says otherwise."""

    guard: GuardedPlugin
    profiles: frozenset[str]
    weight: int

    @property
    def name(self) -> str:
        """As the plugin has it."""
        return self.guard.name


@dataclass(frozen=True, slots=True)
class UsedPlugins:
    """All plugins that the settings name. binds: pods are bound here, so that what runs around bindings does."""

    plugins: tuple[UsedPlugin, ...] = ()
    binds: bool = False

    def filters(self, profile: str | None = None) -> tuple[Filter, ...]:
        """Return the filters that run for all pods of a profile; None = all there are."""
        wanted = (one.guard.filter for one in self.plugins if profile is None or profile in one.profiles)
        return tuple(one for one in wanted if one is not None)

    def scores(self, profile: str) -> tuple[tuple[NodeScore, int], ...]:
        """Return all scores with their weights for a profile: 0 where only a policy may give one."""
        return tuple(
            (one.guard.score, one.weight if profile in one.profiles else 0)
            for one in self.plugins
            if one.guard.score is not None
        )

    def pre_bind(self, profile: str) -> tuple[PluginPreBind, ...]:
        """Return what runs before pods of a profile are bound."""
        found = (one.guard.pre_bind for one in self.plugins if self.binds and profile in one.profiles)
        return tuple(one for one in found if one is not None)

    def post_bind(self, profile: str) -> tuple[PluginPostBind, ...]:
        """Return what runs after pods of a profile are bound."""
        found = (one.guard.post_bind for one in self.plugins if self.binds and profile in one.profiles)
        return tuple(one for one in found if one is not None)

    def collectors(self) -> tuple[PluginCollector, ...]:
        """Return what exports failures; none without plugins."""
        return (PluginCollector(one.guard for one in self.plugins),) if self.plugins else ()


NO_PLUGINS: Final = UsedPlugins()


def used_plugins(options: Mapping[str, PluginOptions]) -> UsedPlugins:
    """Load the plugins that are named. The same name and settings give the same object, once per process.

    Raises InputError: no such entry point, one that cannot be loaded, settings that are wrong.
    """
    found = [UsedPlugin(_guarded(name, one), frozenset(one.profiles), one.weight) for name, one in options.items()]
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"plugins: two entry points have a plugin of the name {twice[0]!r}: leave one of them out")
    return UsedPlugins(tuple(found))


def installed_plugins() -> tuple[EntryPoint, ...]:
    """Entry points that are installed, by name; none of them is loaded."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda one: one.name))


def plugin_class(name: str) -> type[NodePlugin]:
    """Load the class of an entry point. Raises InputError."""
    known = {one.name: one for one in installed_plugins()}
    if name not in known:
        raise InputError(
            f"plugins.{name}: no installed package has an entry point {name!r} in the group {GROUP}: "
            f"{way_out(name, list(known)) if known else 'install its package into this environment'}"
        )
    try:
        loaded = known[name].load()
    except Exception as error:
        raise InputError(f"plugins.{name}: {known[name].value} cannot be loaded: {error}") from error
    if not isinstance(loaded, type) or not issubclass(loaded, NodePlugin) or not hasattr(loaded, "name"):
        raise InputError(f"plugins.{name}: {known[name].value} is no NodePlugin with a name (docs/extend/plugins.md)")
    if loaded.name in _OURS:
        raise InputError(f"plugins.{name}: we have a plugin {loaded.name}: give {loaded.__name__} another name")
    return loaded


def _guarded(name: str, options: PluginOptions) -> GuardedPlugin:
    loaded = plugin_class(name)
    if not points_of_plugin(loaded):
        raise InputError(f"plugins.{name}: {loaded.__name__} overrides none of filter, score, pre_bind, post_bind")
    settings = _settings(name, loaded.settings_class, options.settings)
    key = name, settings.model_dump_json()
    if key not in _made:
        try:
            _made[key] = GuardedPlugin(loaded(settings))
        except Exception as error:
            raise InputError(f"plugins.{name} cannot be made: {type(error).__name__}: {error}") from error
    return _made[key]


def _settings(name: str, model: type[BaseModel], given: Mapping[str, Any]) -> BaseModel:
    place = f"plugins.{name}.settings"
    if unknown := next((key for key in given if key not in model.model_fields), None):
        raise InputError(f"{place} has no key {unknown!r}: {way_out(unknown, model.model_fields)}")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        mistake = error.errors()[0]
        key = ".".join([place, *map(str, mistake["loc"])])
        raise InputError(f"{key}: {what_is_allowed(mistake)}") from error
