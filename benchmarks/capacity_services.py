"""A cluster of many small services in memory, for the time that `capacity` takes: no history, no fit."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from forecast.calendar import SLOTS_PER_DAY
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, MEMORY, RESOURCES
from scorer.replay.curves import CurveForecast, true_future
from scorer.replay.preparation import Prepared
from scorer.replay.recording import Recording
from scorer.replay.window import ReplayWindow

DAYS = 7
PODS_PER_NODE = 13
CORES, BYTES = 16.0, 64.0 * 2**30


def many_services(n_services: int, *, seed: int = 0) -> Prepared:
    """One to three pods of each service, whose evenings come at other hours; the forecast errs by some per cent."""
    rng = np.random.default_rng(seed)
    service = np.repeat(np.arange(n_services), rng.integers(1, 4, n_services))
    n_pods, n_slots = len(service), DAYS * SLOTS_PER_DAY
    n_nodes = n_pods // PODS_PER_NODE
    hour = np.arange(n_slots) % SLOTS_PER_DAY
    peak = rng.normal(40, 5, n_services)[:, None]
    away = np.abs((hour - peak + 24) % SLOTS_PER_DAY - 24)
    shape = 0.3 + 0.7 * np.exp(-(away**2) / 50)  # (n_services, n_slots)
    size = np.exp(rng.uniform(np.log(0.2), np.log(3.0), n_services))
    cpu = size[:, None] * shape
    load = np.zeros((n_pods, len(RESOURCES), n_slots), dtype=np.float32)
    load[:, CPU] = cpu[service] * np.exp(rng.normal(0, 0.1, (n_pods, n_slots)))
    load[:, MEMORY] = (size * 2.0**30)[service][:, None]
    requests = np.stack([0.5 * size, size * 2.0**30], axis=1)
    capacity = np.full((n_nodes, len(RESOURCES)), np.nan)
    capacity[:, CPU], capacity[:, MEMORY] = CORES, BYTES
    recording = Recording(
        service=service,
        ending=np.zeros(n_services, dtype=np.bool_),
        requests=requests[service],
        birth=np.zeros(n_pods, dtype=np.int64),
        death=np.full(n_pods, n_slots),
        started=np.zeros(n_pods, dtype=np.int64),
        load=load,
        present=np.ones((n_pods, n_slots), dtype=np.float32),
        live=load[:, :, 0].astype(np.float64),
        base=np.zeros((n_nodes, len(RESOURCES), n_slots)),
        live_base=np.zeros((n_nodes, len(RESOURCES))),
        first_node=np.full(n_pods, -1),
        nodes=np.arange(n_nodes),
        capacity=capacity,
        assumed=np.zeros_like(capacity, dtype=np.bool_),
        allocatable=capacity[:, [CPU, MEMORY]].copy(),
        service_requests=requests,
        hot=HOT_SHARE,
    )
    truth = true_future(recording, np.zeros(n_services, dtype=np.bool_))
    window = ReplayWindow(7, tuple(date(2026, 11, 2) + timedelta(days=day) for day in range(DAYS)), 0, DAYS)
    forecasts = {
        "oracle": truth,
        "forecast": _wrong(truth, 0.05, rng),
        "last_week": _wrong(truth, 0.15, rng),
    }
    return Prepared(window, recording, forecasts, {})


def _wrong(truth: CurveForecast, error: float, rng: np.random.Generator) -> CurveForecast:
    """The same with an error per service and half hour."""
    mean = truth.mean * np.exp(rng.normal(0, error, truth.mean.shape))
    return CurveForecast(
        mean=mean,
        curves=mean[:, :, None],
        curve_weights=truth.curve_weights,
        replicas=truth.replicas,
        autoscaled=truth.autoscaled,
        base=truth.base,
        run_seconds=truth.run_seconds,
    )
