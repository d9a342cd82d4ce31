"""Settings of types of cards: `node_rules.cards`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import Field

from base.setting_group import Duration, Off, SettingGroup


class Protection(Enum):
    """What nodes are kept for whom by."""

    OFF = "off"
    SOFT = "soft"  # other nodes come first
    HARD = "hard"  # the nodes are not for others


class Even(Enum):
    """Among which types the pressure is kept even."""

    OFF = "off"
    NAMED = "named"  # those that a pod names, if it names several
    ALL = "all"  # also, for pods that name none, all that are equally scarce


class CardOptions(SettingGroup):
    """What is kept for whom among types of cards (docs/use/gpu.md)."""

    protection: Annotated[Protection, Off] = Protection.SOFT
    """Protection of scarce cards from pods that name no type. soft: less scarce cards come first. hard: scarce cards
    are not for such pods."""

    rare_types: tuple[str, ...] = ()
    """Types that are always the scarcest, whatever the cluster says."""

    rare_from: float = Field(default=0.8, gt=0, le=1)
    """Scarcity from which on a type is rare, with `protection: hard`."""

    band: float = Field(default=0.8, ge=0.01, le=1)
    """Width of a class of scarcity: types of one class are the same to pods that name none. Wide, so that there are two
    classes: among few nodes fragmentation has little choice."""

    half_life: Duration = Field(default=21_600, gt=0)
    """Time after which what was wanted once, and no longer is, counts half."""

    without_cards: Annotated[Protection, Off] = Protection.SOFT
    """Protection of nodes with cards from pods that ask for none. off: as any other node. soft: these nodes come last.
    hard: these nodes are not for such pods."""

    even: Annotated[Even, Off] = Even.NAMED
    """Pods for which the pressure of types is kept even: none, those that name several types, or all."""

    pressure_band: float = Field(default=0.2, ge=0, le=1)
    """Difference of pressure that does not matter: share of its supply by which one type may be wanted more than
    another before the other one comes first."""
