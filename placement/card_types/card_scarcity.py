"""How scarce each model of cards is: computed every few seconds from the demand and the devices, and shown in
/metrics.

In between nothing changes: a filter says the same of all pods of a batch, and pods do not go here and there with each
pod that lands. `advance` is to be called under the lock of the tables, by a thread of its own.

Demand that accepts several models is parted among them by their supply S:

    E[m] = sum over demands d of  wanted[d] * S[m] / sum of S over what d accepts        of what is wanted at all
    N[m] = the same of what is wanted and has not got a card

    scarcity[m] = min(1, max(E[m] / S[m], N[m] / F[m]))                                  F: the free part of S

The first says how much of the model is for such pods in the long run, the second how much of what is free now. Demand
that accepts every model makes none of them scarce, and is not to be passed in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from base.arrays import Bools, Floats, Ints
from placement.card_names import of_any_type
from placement.card_types.card_demand import CardDemand
from placement.card_types.card_type_requests import accepted
from placement.devices.device_demand import WHOLE
from placement.devices.device_table import DeviceTable
from placement.node_rule_settings import CardOptions

HYSTERESIS = 0.05
"""By which scarcity must leave a class before the class changes (a fifth of a band, if that is less): else every pod
might."""


def exclusive_demand(accepts: Bools, amounts: Floats, supply: Floats) -> Floats:
    """What is wanted of each model.

    accepts : (n_demands, n_models) models that a demand can do with
    amounts : (n_demands,) wanted, in the unit of `supply`, >= 0; no more counts than there is of what it accepts
    supply  : (n_models,) >= 0
    Returns (n_models,).
    """
    of_each = np.where(accepts, supply, 0.0)  # (n_demands, n_models)
    within_reach = of_each.sum(axis=1)  # (n_demands,)
    share = np.minimum(amounts, within_reach) / np.where(within_reach > 0, within_reach, 1.0)
    return np.asarray(share @ of_each)  # (n_models,)


def scarcities(wanted: Floats, unserved: Floats, supply: Floats, free: Floats) -> Floats:
    """(n_models,) in 0..1; all arguments (n_models,) in one unit: E, N, S and F of the formula."""
    in_all = np.divide(wanted, supply, out=np.zeros_like(supply), where=supply > 0)
    # Where nothing is free any pod that waits for it says enough; where there is no card nothing is scarce.
    full = np.where((unserved > 0) & (supply > 0), 1.0, 0.0)
    of_free = np.divide(unserved, free, out=full, where=free > 0)
    return np.asarray(np.clip(np.maximum(in_all, of_free), 0.0, 1.0))


def classes(scarcity: Floats, before: Ints, band: float) -> Ints:
    """(n_models,) band of each; before: (n_models,) the last answer, -1 = none; kept where it nearly fits."""
    now = np.floor(scarcity / band + 1e-9).astype(np.int64)
    slack = min(HYSTERESIS, 0.2 * band)
    still = (before >= 0) & (scarcity >= before * band - slack) & (scarcity < (before + 1) * band + slack)
    return np.asarray(np.where(still, before, now))


def rare(scarcity: Floats, before: Bools, rare_from: float, least: float) -> Bools:
    """(n_models,) whether each is rare; one that was is until it is clearly less scarce.

    least : the least of the scarcities: as scarce as that is not rare, since pods that do not ask have to go somewhere
    """
    slack = np.where(before, HYSTERESIS, 0.0)
    return np.asarray((scarcity >= rare_from - slack) & (scarcity > least + HYSTERESIS - slack))


def pressures(used: Floats, waiting: Floats, supply: Floats) -> Floats:
    """(n_models,) share of the supply that is used, or wanted by pods that wait and can do with few models; a model
    without a card: infinite. All arguments (n_models,) in one unit."""
    return np.divide(used + waiting, supply, out=np.full_like(supply, np.inf), where=supply > 0)


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


class CardCollector(Collector):
    """Reads the figures at each scrape, without the lock: they are of one moment."""

    def __init__(self, scarcity: CardScarcity) -> None:
        self._scarcity = scarcity

    def collect(self) -> Iterator[Metric]:
        """Of all models that nodes have, or had."""
        latest = self._scarcity.latest
        gauges = {
            "forecast_gpu_card_scarcity_ratio": (
                "How scarce a model of cards is, 0 to 1: what is wanted by pods that cannot do with every model.",
                latest.scarcity,
            ),
            "forecast_gpu_card_scarcity_class": (
                "Class of scarcity of a model: pods that name no type go where it is lowest.",
                latest.band,
            ),
            "forecast_gpu_card_rare": (
                "1 = the model is rare: with protection hard its nodes are only for pods that name it.",
                latest.is_rare,
            ),
            "forecast_gpu_card_wanted_thousandths": (
                "Thousandths of cards wanted, now or lately, by pods that cannot do with every model.",
                latest.wanted,
            ),
            "forecast_gpu_card_waiting_thousandths": (
                "Thousandths of cards for which such pods wait.",
                latest.waiting,
            ),
        }
        for name, (text, values) in gauges.items():
            family = GaugeMetricFamily(name, text, labels=["model"])
            for model, value in zip(latest.models, values.tolist(), strict=True):
                family.add_metric([model], float(value))
            yield family
