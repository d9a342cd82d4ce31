"""Settings of the gate: `train.gate`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import SettingGroup


class GateLimits(SettingGroup):
    """When tonight's model may replace the one in use, per resource (docs/operate/train.md)."""

    worse_than_current: float = Field(default=0.02, ge=0)
    """Share by which the loss of a resource may exceed that of the model in use."""

    fewest_for_naive: int = Field(default=20, ge=1)
    """Series-days below which the comparison with the seasonal naive is noise and not made. One night of a cluster of
    20 services must suffice."""

    lowest_coverage: float = Field(default=0.85, ge=0, le=1)
    """Least share of peaks that its 0.95 bounds must have held."""

    highest_coverage: float = Field(default=0.995, ge=0, le=1)
    """Share of peaks within these bounds above which the report warns that the bounds are too wide."""

    evaluation_days: int = Field(default=7, ge=1)
    """Last days after the cut-off of the model in use that count."""

    max_held_back_nights: int = Field(default=3, ge=1)
    """After this many nights in a row a resource is published all the same, its bounds widened."""


class GateOptions(GateLimits):
    """The settings, and what the command line says."""

    force: bool = False
    """Publish everything as it is."""
