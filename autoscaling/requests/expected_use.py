"""What services are expected to use: of the live cluster in the coming week, or on recorded days that the forecast did
not know.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from autoscaling.requests.use import PodUseOfService, use_of
from base.arrays import Floats
from base.errors import InputError
from cluster.degradation import Level
from cluster.live_tables import LiveTables
from cluster.scale_out import example_pods, requests_of
from forecast.hidden_demand import RECENT_DAYS, HiddenDemand, hidden_demand
from forecast.history import History
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer.replay.curves import from_model
from scorer.replay.preparation import Prepared
from scorer.replay.window import ReplayWindow


def live_use(tables: LiveTables) -> tuple[PodUseOfService, dict[ServiceKey, PodInfo]]:
    """The services that the model knows or that have pods, and a pod of each that has some.

    Raises InputError where there is no forecast that may be acted on.
    """
    with tables.reading() as cluster:
        predicted, state = cluster.predicted, cluster.state
        if predicted is None or tables.level()[0] >= Level.REQUESTS:
            raise InputError("there is no forecast to go by: run `forecast-scheduler train`, and pass its --models")
        model, days = predicted.profiles.model, predicted.horizon.days
        found = example_pods(state, lambda key: True)
        pods = {state.services[service]: pod for service, pod in found.items()}
        replicas = {state.services[service]: state.replicas(service) for service in found}
        columns = [state.kinds[RESOURCES[resource].name] for resource in (CPU, MEMORY)]
        allocatable = state.allocatable[state.alive][:, columns]
        capacity = predicted.capacity.copy()
    services = (*model.services, *sorted(set(pods) - set(model.services)))
    n_more = len(services) - len(model.services)
    now = np.array([replicas.get(service, 0.0) for service in services])
    requests = np.zeros((len(services), 2))
    here = [row for row, service in enumerate(services) if service in pods]
    requests[here] = requests_of([pods[services[row]] for row in here])
    window = ReplayWindow(first_day=0, days=days, first_slot=0, n_days=len(days))
    forecast = from_model(model, window, now[: len(model.services)])
    use = use_of(
        forecast,
        window,
        model.calendar,
        model.services,
        requests=requests[: len(model.services)],
        seen_memory=np.full(len(model.services), np.nan),
        measured=np.stack([model.measured(CPU), model.measured(MEMORY)], axis=1),
        hidden=HiddenDemand.of_info(model.info, model.services),
        capacity=capacity,
        allocatable=np.where(allocatable > 0, allocatable, np.inf),
    )
    # What the model remembers of services that are gone is no load of this cluster.
    use.replicas[now[: len(model.services)] <= 0] = 0.0
    return _with_unknown(use, services[len(services) - n_more :], now, requests), pods


def _with_unknown(
    use: PodUseOfService, unknown: tuple[ServiceKey, ...], now: Floats, requests: Floats
) -> PodUseOfService:
    """The same with services that the model does not know: nothing of them was measured."""
    n = len(unknown)
    _, n_resources, n_slots = use.mean.shape
    nothing = np.zeros((n, n_resources, n_slots))
    known = len(use.services)
    return replace(
        use,
        services=(*use.services, *unknown),
        mean=np.concatenate([use.mean, nothing]),
        std=np.concatenate([use.std, nothing]),
        highest_memory=np.concatenate([use.highest_memory, np.full(n, np.nan)]),
        replicas=np.concatenate([use.replicas, np.repeat(now[known:, None], n_slots, axis=1)]),
        requests=requests,
        measured=np.concatenate([use.measured, np.zeros((n, 2), dtype=np.bool_)]),
        ending=np.concatenate([use.ending, [service.runs_to_completion for service in unknown]]).astype(np.bool_),
        hidden=use.hidden.with_more(n),
    )


def recorded_use(history: History, prepared: Prepared, *, rule: str = "forecast") -> PodUseOfService:
    """What was known before the window, by a forecast of `prepared`. history: all of it, as `prepare` got it"""
    recording, window, forecast = prepared.recording, prepared.window, prepared.forecasts[rule]
    known = history.before(window.first_day)
    usage = known.usage_per_pod[:, [CPU, MEMORY]]  # (n_services, 2, n_days, 48)
    first = recording.first_requests()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # services that were not measured
        seen = np.nanmax(usage[:, 1, -RECENT_DAYS:].astype(np.float64), axis=(1, 2), initial=-np.inf)
    return use_of(
        forecast,
        window,
        history.calendar,
        history.services,
        requests=np.where(first > 0, first, recording.service_requests),
        seen_memory=np.where(np.isfinite(seen), seen, np.nan),
        measured=np.asarray(np.isfinite(usage).any(axis=(2, 3))),
        hidden=hidden_demand(known),
        capacity=recording.known_capacity,
        allocatable=recording.allocatable,
    )
