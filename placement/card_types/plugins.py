"""All that a scheduler process needs of types of cards, made before the cluster is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from cluster.tables.state import ClusterState
from placement.card_types.card_scarcity import CardScarcity
from placement.card_types.card_types import CardTypes
from placement.card_types.demand import CardDemand
from placement.card_types.metrics import CardCollector
from placement.card_types.options import CardOptions
from placement.devices.device_table import DeviceTable


@dataclass(frozen=True, slots=True)
class CardPlugins:
    """
    demand    : Follower, to be attached after the devices
    scarcity  : the queue is to receive `scarcity.on_change` as FORECAST_CHANGED
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
    demand = CardDemand(state, devices, half_life_seconds=options.half_life, clock=clock)
    scarcity = CardScarcity(devices, demand, options, clock=clock)
    return CardPlugins(demand, scarcity, CardTypes(devices, scarcity), CardCollector(scarcity))
