"""What the services of the live cluster are expected to use in the coming hours, gathered once for all hands, and how
many pods they will have soon, with the forecast's error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Floats
from base.excluded import ExcludedOptions
from cluster.degradation import Level
from cluster.live_tables import LiveTables
from cluster.predicted.horizon import LIVE_HALF_LIFE_SLOTS, Horizon
from cluster.scale_out import example_pods, requests_of
from forecast.calendar import SLOT_MINUTES
from forecast.resources import CPU
from forecast.service_key import ServiceKey
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

_DAYS: Final = 3
"""Today and all of the next 24 hours, also around midnight, with an hour to spare."""

BUFFER_LABEL: Final = f"{ANNOTATION_PREFIX}buffer"
"""Label of all that belongs to a buffer, placeholder pods included. Its value names the buffer."""

_HALF_LIFE_SECONDS: Final = 60.0 * SLOT_MINUTES * LIVE_HALF_LIFE_SLOTS
"""Of the difference between the pods that are there and those that were expected; the scorer's for usage."""


@dataclass(frozen=True, slots=True)
class ServicesAhead:
    """Services that have pods now, that run on and on, and that the model has measured.

    Half hours count from midnight of today; a value is the mean over its half hour.

    examples   : one pod of each service
    replicas   : (n_services,) pods that serve now
    requests   : (n_services, 2) of one pod, cores and bytes; no more than the largest node has, whatever it says: no
                 pod of it will run, and what others need is not to drown in it
    autoscaled : (n_services,) whether the number of replicas follows the load
    expected_replicas : (n_services, n_slots)
    load, std  : (n_services, n_resources, n_slots) all pods of a service together, and the forecast error; base units
    horizon    : the days of these half hours
    """

    services: tuple[ServiceKey, ...]
    examples: tuple[PodInfo, ...]
    replicas: Floats
    requests: Floats
    autoscaled: Bools
    expected_replicas: Floats
    load: Floats
    std: Floats
    horizon: Horizon

    def at(self, by_slot: Floats, moment: float) -> Floats:
        """One of the curves, (..., n_slots), at a moment in unix seconds: (...).

        Between the middles of two half hours it goes over evenly; before the first and after the last it stays.
        """
        position = min(max(self.horizon.position(moment) - 0.5, 0.0), by_slot.shape[-1] - 1.0)
        before = int(position)
        after = min(before + 1, by_slot.shape[-1] - 1)
        part = position - before
        return np.asarray((1 - part) * by_slot[..., before] + part * by_slot[..., after])

    def highest(self, by_slot: Floats, since: float, until: float) -> Floats:
        """The highest value of a curve between two moments: (...)."""
        n_steps = max(1, int(np.ceil((until - since) / (60.0 * SLOT_MINUTES / 2))))
        moments = np.linspace(since, until, n_steps + 1)
        return np.asarray(np.max([self.at(by_slot, float(moment)) for moment in moments], axis=0))


def services_ahead(
    tables: LiveTables,
    excluded: ExcludedOptions,
) -> ServicesAhead | None:
    """Gather them; None = there is no forecast that may be acted on (docs/use/scorer.md, the degradation ladder).

    excluded : services that are left alone: their pods are like those of services that no model knows
    """
    with tables.reading() as cluster:
        predicted, state = cluster.predicted, cluster.state
        if predicted is None or tables.level()[0] >= Level.REQUESTS:
            return None
        profiles, horizon = predicted.profiles, predicted.horizon

        def runs_on(key: ServiceKey) -> bool:
            if not profiles.knows(key) or key.runs_to_completion or profiles.is_expected(key):
                return False
            return not excluded.why(key.namespace, key.kind, key.name)

        found = example_pods(state, runs_on)
        replicas = np.array([state.replicas(service) for service in found], dtype=np.float64)
        services, most = tuple(state.services[service] for service in found), predicted.bounds.of(None)
    # Profiles never change, and those of 5,000 services take most of a second: without the lock.
    days = horizon.days[:_DAYS]
    examples = tuple(found.values())
    return ServicesAhead(
        services=services,
        examples=examples,
        replicas=replicas,
        requests=requests_of(examples, most),
        autoscaled=np.array([profiles.autoscaled(service) for service in services], dtype=np.bool_),
        expected_replicas=profiles.expected_replicas(services, days),
        load=profiles.total(services, days),
        std=profiles.total_std(services, days),
        horizon=Horizon(days, horizon.slot, horizon.zone),
    )


@dataclass(frozen=True, slots=True)
class PodsAhead:
    """pods, std : (n_services, n_moments) expected at some moments, and the standard deviation of the error."""

    pods: Floats
    std: Floats


def pods_ahead(ahead: ServicesAhead, now: float, moments: Floats) -> PodsAhead:
    """Pods of each service at some moments, from those that are there now.

    Pods of an autoscaled service change as the forecast does. That there are more or fewer than expected at this moment
    fades with a half-life of six hours. All other services stay as they are.

    moments : (n_moments,) unix seconds, none before `now`
    """
    expected = np.stack([ahead.at(ahead.expected_replicas, float(moment)) for moment in moments], axis=1)
    beyond = ahead.replicas - ahead.at(ahead.expected_replicas, now)  # (n_services,)
    fading = 0.5 ** ((moments - now) / _HALF_LIFE_SECONDS)  # (n_moments,)
    pods = np.maximum(expected + beyond[:, None] * fading, 0.0)
    follows = (ahead.autoscaled & ~is_placeholder(ahead))[:, None]
    # The count follows the load: both have the same relative error.
    load, std = (
        np.stack([ahead.at(curve[:, CPU], float(moment)) for moment in moments], axis=1)
        for curve in (ahead.load, ahead.std)
    )
    relative = np.minimum(std / np.maximum(load, np.finfo(np.float64).tiny), 1.0)
    return PodsAhead(pods=np.where(follows, pods, ahead.replicas[:, None]), std=np.where(follows, pods * relative, 0.0))


def is_placeholder(ahead: ServicesAhead) -> Bools:
    """(n_services,): whether its pods are placeholders of ours."""
    return np.array([BUFFER_LABEL in pod.labels for pod in ahead.examples], dtype=np.bool_)
