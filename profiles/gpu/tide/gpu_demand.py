"""How many GPUs inference will need in each pool, half hour by half hour for a week. Pure.

    expected   replicas that the model expects x GPUs of one, each half hour at the highest of itself and its neighbours
    now        what inference has and waits for now, beyond what is expected: added, and fading
    bound      + margin x all of it, + the root of the sum of (spread x each service)^2, + a reserve
    need       whole GPUs of the bound; now at least what is held and waited for

A service that is not forecast needs what it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats
from forecast.scenarios import dilate
from profiles.gpu.gpu_settings import TideOptions


@dataclass(frozen=True, slots=True)
class ServiceGpus:
    """A service on the inference side.

    key      : for people
    held     : (n_pools,) GPUs that its pods have
    waiting  : (n_pools,) GPUs that pods wait for which are to be served at once
    expected : (n_slots,) GPUs by the forecast; None = there is none, it keeps what it has
    share    : (n_pools,) of its GPUs that each pool has, sums to 1 or 0
    training : it is training, but cannot be moved
    """

    key: str
    held: Floats
    waiting: Floats
    share: Floats
    expected: Floats | None = None
    training: bool = False


@dataclass(frozen=True, slots=True)
class TideDemand:
    """
    starts     : (n_slots + 1,) unix seconds, when each half hour begins, the one under way first; and the end
    capacity   : (n_pools,) GPUs
    need       : (n_pools, n_slots) GPUs that are to be free of training
    expected   : (n_pools, n_slots) the same without margins
    waiting    : (n_pools,) GPUs that inference waits for now
    waits      : (n_pools,) the service that waits for most of them, '' = none
    services   : names
    by_service : (n_services, n_pools, n_slots) what `expected` is made of
    unmoved    : (n_pools,) GPUs of training in `need` that cannot be moved
    forecast   : whether there is a forecast to go by; else training does not grow
    """

    starts: Floats
    capacity: Floats
    need: Floats
    expected: Floats
    waiting: Floats
    waits: tuple[str, ...]
    services: tuple[str, ...]
    by_service: Floats
    unmoved: Floats
    forecast: bool

    @property
    def room(self) -> Floats:
        """(n_pools, n_slots) GPUs that training may have."""
        return np.maximum(self.capacity[:, None] - self.need, 0.0)

    def slots(self, begins: float, ends: float) -> Bools:
        """(n_slots,) half hours that a stretch of time touches; what lies beyond the last is taken to be like it."""
        touched = np.asarray((self.starts[:-1] <= ends) & (self.starts[1:] > begins))
        if not touched.any():
            touched[-1 if begins >= self.starts[-1] else 0] = True
        return touched


def demand_ahead(
    uses: Sequence[ServiceGpus], capacity: Floats, starts: Floats, now: float, options: TideOptions
) -> TideDemand:
    """capacity: (n_pools,); starts: (n_slots + 1,). Of the services `expected` is (n_slots,)."""
    n_pools, n_slots = len(capacity), len(starts) - 1
    by_service = np.zeros((len(uses), n_pools, n_slots))
    known = np.array([use.expected is not None for use in uses], dtype=bool)
    middles = (starts[:-1] + starts[1:]) / 2
    fading = 0.5 ** (np.maximum(middles - now, 0.0) / options.half_life)  # (n_slots,)
    held, waiting = np.zeros(n_pools), np.zeros(n_pools)
    for at, use in enumerate(uses):
        has = use.held + use.waiting
        held, waiting = held + use.held, waiting + use.waiting
        if use.expected is None:
            by_service[at] = has[:, None]
            continue
        beyond = max(0.0, float(has.sum() - dilate(use.expected)[0]))
        by_service[at] = use.share[:, None] * (dilate(use.expected) + beyond * fading)
    expected = by_service.sum(axis=0)  # (n_pools, n_slots)
    forecast = by_service[known]
    errors = options.margin * forecast.sum(axis=0) + np.sqrt(((options.spread * forecast) ** 2).sum(axis=0))
    need = np.ceil(expected + errors + options.reserve_gpus - 1e-9)
    need[:, 0] = np.maximum(need[:, 0], held + waiting)
    return _demand(uses, capacity, starts, by_service, need=need, forecast=True)


def held_demand(uses: Sequence[ServiceGpus], capacity: Floats, starts: Floats) -> TideDemand:
    """Return the demand without a usable forecast: every service needs what it has and waits for."""
    n_slots = len(starts) - 1
    by_service = np.zeros((len(uses), len(capacity), n_slots))
    for at, use in enumerate(uses):
        by_service[at] = (use.held + use.waiting)[:, None]
    return _demand(uses, capacity, starts, by_service, need=by_service.sum(axis=0), forecast=False)


def _demand(
    uses: Sequence[ServiceGpus], capacity: Floats, starts: Floats, by_service: Floats, *, need: Floats, forecast: bool
) -> TideDemand:
    nothing = np.zeros(len(capacity))
    return TideDemand(
        starts=starts,
        capacity=capacity,
        need=need,
        expected=by_service.sum(axis=0),
        waiting=sum((use.waiting for use in uses), nothing),
        waits=_waits(uses, len(capacity)),
        services=tuple(use.key for use in uses),
        by_service=by_service,
        unmoved=sum((use.held for use in uses if use.training), nothing),
        forecast=forecast,
    )


def _waits(uses: Sequence[ServiceGpus], n_pools: int) -> tuple[str, ...]:
    most = [max(uses, key=lambda use: float(use.waiting[pool]), default=None) for pool in range(n_pools)]
    return tuple("" if use is None or use.waiting[pool] <= 0 else use.key for pool, use in enumerate(most))
