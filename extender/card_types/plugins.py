"""All that a scheduler process needs of types of cards: made before the cluster is read, and the thread that looks at
what is scarce."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from extender.card_types.card_scarcity import CardScarcity
from extender.card_types.card_types import CardTypes
from extender.card_types.demand import CardDemand
from extender.card_types.metrics import CardCollector
from extender.card_types.options import CardOptions
from extender.gpu.devices.device_table import DeviceTable
from scorer.cluster.state import ClusterState
from scorer.every import Every

__all__ = ["CardPlugins", "CardWatch", "card_plugins"]

_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class CardPlugins:
    """
    demand    : Follower, to be attached after the devices
    scarcity  : `scarcity.on_change` is to be told to the queue as FORECAST_CHANGED
    types     : Filter, NodePreference, EnqueueExtensions
    collector : of the metrics
    """

    demand: CardDemand
    scarcity: CardScarcity
    types: CardTypes
    collector: CardCollector


def card_plugins(
    state: ClusterState,
    devices: DeviceTable,
    options: CardOptions,
    *,
    clock: Callable[[], float] = time.time,
) -> CardPlugins:
    """Under the lock of the tables. clock: unix seconds."""
    demand = CardDemand(state, devices, half_life_seconds=options.half_life_seconds, clock=clock)
    scarcity = CardScarcity(devices, demand, options, clock=clock)
    return CardPlugins(demand, scarcity, CardTypes(devices, scarcity), CardCollector(scarcity))


class CardWatch:
    """Looks every second, whoever leads: a replica that takes over knows what is scarce."""

    def __init__(
        self,
        scarcity: CardScarcity,
        *,
        locked: Callable[[], AbstractContextManager[object]],
        after: Callable[[], bool] = lambda: True,
    ) -> None:
        """
        locked : takes the lock of the tables
        after  : whether the cluster has been read: what has to be true before the first look
        """
        self._scarcity, self._locked = scarcity, locked
        self._every = Every("cards", _SECONDS, self.step, after=after)

    def step(self) -> None:
        """Look once."""
        with self._locked():
            self._scarcity.advance()

    def start(self) -> None:
        """Begin. Once only."""
        self._every.start()

    def stop(self) -> None:
        """End, once what is under way is done."""
        self._every.stop()
