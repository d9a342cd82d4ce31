"""Settings of Dynamic Resource Allocation: `schedule.gpu.dra`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class DraOptions(SettingGroup):
    """How long the search for devices of ResourceClaims may take (docs/use/dra.md)."""

    most_steps: int = Field(default=20_000, ge=1)
    """Devices that are tried for the claims of one pod on one node before they count as not fitting there: claims with
    constraints over many devices could take for ever."""

    write_timeout: Duration = Field(default=20, gt=0, le=600)
    """Time in which the claims of a pod have to be written to the API server, repetitions included."""

    binding_timeout: Duration = Field(default=600, gt=0, le=86_400)
    """Time that drivers have, from the allocation on, to make devices with binding conditions ready."""
