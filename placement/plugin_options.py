"""Settings of plugins of other packages: `plugins`."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from base.setting_group import SettingGroup

EXTENDER: Final = "extender"
"""What a plugin names among its profiles to count for pods that kube-scheduler places: with our extender, or the
advisor."""


class PluginOptions(SettingGroup):
    """A plugin of another package, under the name of its entry point (docs/extend/plugins.md)."""

    profiles: list[str] = Field(default_factory=list)
    """Profiles whose pods it counts for: online, gpu, job; and `extender`, for pods that
    kube-scheduler places. Empty: only where a policy names it."""

    weight: int = Field(default=1, ge=0)
    """Weight of its score beside kube-scheduler's there; 0: its score does not count. A policy may say otherwise."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """Its own settings; `forecast-scheduler plugins` lists them."""
