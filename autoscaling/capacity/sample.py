"""A part of the services that stands for a large cluster, so that a search of many tries takes seconds.

The waste of a rule, its nodes over those that the load would fill, hardly depends on the size of a large cluster. So
the search runs on some services, and its answer is scaled by what the load of all would fill.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autoscaling.capacity.options import CapacityOptions
from base.arrays import Ints
from scorer.replay.curves import CurveForecast
from scorer.replay.preparation import Prepared
from scorer.replay.recording import Recording


def is_large(prepared: Prepared, options: CapacityOptions) -> bool:
    """Whether to search on a sample."""
    return 0 < 2 * options.sample_pods <= len(prepared.recording.service)


def sample_services(prepared: Prepared, n_pods: int, seed: int) -> Prepared:
    """The pods and curves of random services with about n_pods pods together; the nodes are the same."""
    recording = prepared.recording
    order = np.random.default_rng((seed, 2)).permutation(recording.n_services)
    pods = np.cumsum(np.bincount(recording.service, minlength=recording.n_services)[order])
    services = np.sort(order[: int(np.searchsorted(pods, n_pods)) + 1])
    return replace(
        prepared,
        recording=_pods_of(recording, services),
        forecasts={name: _curves_of(forecast, services) for name, forecast in prepared.forecasts.items()},
    )


def _pods_of(recording: Recording, services: Ints) -> Recording:
    number = np.full(recording.n_services, -1)
    number[services] = np.arange(len(services))
    here = number[recording.service] >= 0
    return replace(
        recording,
        service=number[recording.service[here]],
        ending=recording.ending[services],
        requests=recording.requests[here],
        birth=recording.birth[here],
        death=recording.death[here],
        started=recording.started[here],
        load=recording.load[here],
        present=recording.present[here],
        live=recording.live[here],
        first_node=recording.first_node[here],
        service_requests=recording.service_requests[services],
    )


def _curves_of(forecast: CurveForecast, services: Ints) -> CurveForecast:
    """Without bounds and the model, which no placement needs."""
    return replace(
        forecast,
        mean=forecast.mean[services],
        curves=forecast.curves[services],
        replicas=forecast.replicas[services],
        autoscaled=forecast.autoscaled[services],
        run_seconds=forecast.run_seconds[services],
        bound=None,
        model=None,
    )
