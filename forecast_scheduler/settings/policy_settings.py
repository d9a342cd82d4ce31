"""Settings of policies: where their document is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import field_validator, model_validator

from base.setting_group import SettingGroup
from forecast_scheduler.settings.policy_place import CONFIG_MAP, namespace_and_name


class PolicySettings(SettingGroup):
    """Policies by pod (docs/use/policies.md). Neither file nor config_map: the settings apply to all pods."""

    file: Path | None = None
    """YAML file, looked at twice a second; also that of a mounted ConfigMap; `--policies FILE`."""

    config_map: str | None = None
    """NAMESPACE/NAME of a ConfigMap, which is watched; `--policies configmap:NAMESPACE/NAME`."""

    events: bool = True
    """Tell in events what became of the ConfigMap, and pods that the policy they name is none."""

    @property
    def place(self) -> str | None:
        """As commands take it; None = there is none."""
        if self.config_map is not None:
            return f"{CONFIG_MAP}{self.config_map}"
        return None if self.file is None else str(self.file)

    @field_validator("file", "config_map", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        """So that an option can take the place of the other setting."""
        return None if value == "" else value

    @field_validator("config_map")
    @classmethod
    def _has_both(cls, value: str | None) -> str | None:
        if value is not None:
            namespace_and_name(value)
        return value

    @model_validator(mode="after")
    def _one_place(self) -> PolicySettings:
        if self.file is not None and self.config_map is not None:
            raise ValueError("policies come from a file or from a ConfigMap: leave one of them out")
        return self
