"""Settings of `capacity`: what it searches for, and how far."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import SettingGroup


class CapacityOptions(SettingGroup):
    """What `capacity` asks for unless its options say otherwise. Days and seed are those of `replay`."""

    target: float = Field(default=0.001, ge=0, lt=1)
    """Share of node half hours that may be hot."""

    most: float = Field(default=10.0, ge=1, le=100)
    """The search ends at this multiple of the recorded nodes. A rule that needs more has no number."""

    sample_pods: int = Field(default=1000, ge=0)
    """From twice as many pods on, the search places a random sample of services with about so many pods, and scales
    its answer. 0 places all pods, whatever that takes."""
