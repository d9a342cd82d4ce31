"""What is kept for whom among types of cards; the settings say the same under node_rules.cards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from forecast.errors import InputError

__all__ = ["CardOptions", "Even", "Protection"]


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


@dataclass(frozen=True, slots=True)
class CardOptions:
    """
    protection        : of scarce cards from pods that do not ask for them
    rare_types        : types that are always the scarcest, whatever the cluster says
    rare_from         : with HARD: scarcity, 0..1, from which on a type is rare
    band              : width of a class of scarcity, 0..1: types of one class are the same to pods that name none.
                        Wide, so that there are two: among few nodes fragmentation has little choice
    half_life_seconds : after this time what was wanted once, and no longer is, counts half
    without_cards     : of nodes with cards from pods that ask for none: they come last, or are not for them
    even              : for which pods the pressure of types is kept even
    pressure_band     : so much more of its supply may be wanted of one type than of another before that one comes first

    Raises InputError.
    """

    protection: Protection = Protection.SOFT
    rare_types: tuple[str, ...] = ()
    rare_from: float = 0.8
    band: float = 0.8
    half_life_seconds: float = 6 * 3600.0
    without_cards: Protection = Protection.SOFT
    even: Even = Even.NAMED
    pressure_band: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.rare_from <= 1:
            raise InputError(f"rare_from is {self.rare_from}: a scarcity above 0 and at most 1 is needed, such as 0.8")
        if not 0.01 <= self.band <= 1:
            raise InputError(f"band is {self.band}: a share from 0.01 to 1 is needed, such as 0.8")
        if not 0 <= self.pressure_band <= 1:
            raise InputError(f"pressure_band is {self.pressure_band}: a share from 0 to 1 is needed, such as 0.2")
        if not (math.isfinite(self.half_life_seconds) and self.half_life_seconds > 0):
            raise InputError(f"half_life_seconds is {self.half_life_seconds}: make it more than 0")
