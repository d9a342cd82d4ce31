"""Which models of cards are scarce at the moment: the demand and the devices, looked at every few seconds.

In between nothing changes: a filter says the same of all pods of a batch, and pods do not go here and there with each
pod that lands. `advance` is to be called under the lock of the tables, by a thread of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Bools, Floats, Ints
from placement.card_types.card_type_requests import accepted
from placement.card_types.demand import CardDemand
from placement.card_types.options import CardOptions
from placement.card_types.scarcity import classes, exclusive_demand, rare, scarcities
from placement.devices.card_names import of_any_type
from placement.devices.demand import WHOLE
from placement.devices.device_table import DeviceTable


def _floats() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Scarcity:
    """What was found last. Arrays are (n_models,), amounts in thousandths of a card.

    models   : as the labels of nodes name them
    scarcity : 0..1
    band     : class of scarcity; 0 = not scarce
    is_rare  : with protection HARD their nodes are for pods that name them
    supply, free : of cards
    wanted   : by pods that cannot do with every model, parted among those that they can do with
    waiting  : of that, by pods that have no node
    """

    models: tuple[str, ...] = ()
    scarcity: Floats = field(default_factory=_floats)
    band: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    is_rare: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    supply: Floats = field(default_factory=_floats)
    free: Floats = field(default_factory=_floats)
    wanted: Floats = field(default_factory=_floats)
    waiting: Floats = field(default_factory=_floats)


class CardScarcity:
    """latest: replaced as a whole, for any thread; on_change: called when another model is scarcer, or rare; quick."""

    def __init__(
        self,
        devices: DeviceTable,
        demand: CardDemand,
        options: CardOptions,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """clock: unix seconds."""
        self.options = options
        self._devices, self._demand, self._clock = devices, demand, clock
        self._is_listed = of_any_type(options.rare_types)
        self.latest = Scarcity()
        self.on_change: list[Callable[[], None]] = []
        self.advance()

    def advance(self) -> None:
        before, now = self.latest, self._look()
        self.latest = now
        n = len(before.models)
        is_same = bool(
            (now.band[:n] == before.band).all()
            and (now.is_rare[:n] == before.is_rare).all()
            and not now.is_rare[n:].any()
            and not now.band[n:].any()
        )
        for listener in () if is_same else self.on_change:
            listener()

    def _look(self) -> Scarcity:
        options, models = self.options, tuple(self._devices.models)
        supply, free = model_sums(self._devices)
        supply, free = supply[:-1], free[:-1]
        wanted, unserved, waiting = self._exclusive(models, supply)
        scarcity = scarcities(wanted, unserved, supply, free)
        listed = np.fromiter(map(self._is_listed, models), dtype=bool, count=len(models))
        scarcity[listed] = 1.0
        n_new = len(models) - len(self.latest.models)  # a model keeps its place for good
        band = classes(scarcity, np.append(self.latest.band, np.full(n_new, -1)), options.band)
        was_rare = np.append(self.latest.is_rare, np.zeros(n_new, dtype=bool))
        least = min(scarcity[supply > 0].tolist(), default=0.0)
        is_rare = rare(scarcity, was_rare, options.rare_from, least) | listed
        return Scarcity(models, scarcity, band, is_rare, supply, free, wanted, waiting)

    def _exclusive(self, models: tuple[str, ...], supply: Floats) -> tuple[Floats, Floats, Floats]:
        """Wanted now or lately, of that without a card, and of that by pods that wait, each (n_models,)."""
        rows = [(one, accepted(one.wish, models)) for one in self._demand.wanted()]
        # Who accepts every model there is takes none from others; who accepts none waits for another cluster.
        rows = [(one, fits) for one, fits in rows if (supply[fits] > 0).any() and (supply[~fits] > 0).any()]
        if not rows:
            nothing = np.zeros(len(models))
            return nothing, nothing.copy(), nothing.copy()
        now, half_life = self._clock(), self.options.half_life
        accepts = np.array([fits for _, fits in rows])
        recent = np.array([one.recent(now, half_life) for one, _ in rows])
        sitting = np.array([one.sitting for one, _ in rows], dtype=np.float64)
        waiting = np.array([one.waiting for one, _ in rows], dtype=np.float64)
        return (
            exclusive_demand(accepts, recent, supply),
            exclusive_demand(accepts, np.maximum(recent - sitting, 0.0), supply),
            exclusive_demand(accepts, waiting, supply),
        )


def model_sums(devices: DeviceTable) -> tuple[Floats, Floats]:
    """Return all and free thousandths, (n_models + 1,) each; the last of cards without a known model."""
    n, model = len(devices.models), devices.model
    group = np.where(model < 0, n, model)
    supply = np.bincount(group, weights=WHOLE * devices.n_devices, minlength=n + 1)
    free = np.bincount(group, weights=np.maximum(devices.free_milli, 0).sum(axis=1), minlength=n + 1)
    return supply.astype(np.float64, copy=False), free.astype(np.float64, copy=False)
