"""What the benchmark of requests measures with: admission by requests, as the real kube-scheduler decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.requests_admission import admission, arrivals
from benchmarks.requests_real import admitted_by_kube_scheduler, admitted_by_replay
from benchmarks.requests_vpa import vpa_requests
from forecast.resources import CPU, MEMORY
from tests.autoscaling.capacity.tiny_prepared import steady
from tests.synthetic import synthetic_history

GIB = 2.0**30


def test_the_real_kube_scheduler_admits_as_many_pods_as_the_replay() -> None:
    rng = np.random.default_rng(0)
    allocatable = np.tile([8.0, 32 * GIB], (6, 1))
    requests = np.stack([rng.choice([0.25, 0.5, 1.0, 2.5], 90), rng.choice([0.5, 1.0, 2.0], 90) * GIB], axis=1)
    real, replayed = admitted_by_kube_scheduler(allocatable, requests), admitted_by_replay(allocatable, requests, 0)
    assert replayed < len(requests)
    assert abs(real - replayed) <= 3


def test_pods_are_admitted_until_one_fits_nowhere() -> None:
    """Two nodes of 10 cores take four pods of 5 cores each; two that use 4.5 make a node hot."""
    recording = steady([4.5, 4.5], n_nodes=2).recording
    found = admission(recording, np.tile([5.0, 0.0], (recording.n_services, 1)), 0, hot_limit=0.0)
    assert found.full.pods == 4
    assert found.full.hot > 0
    assert found.cool.pods == 2
    assert found.cool.hot == 0
    assert len(set(arrivals(recording, 0)[: len(recording.service)].tolist())) == len(recording.service)


def test_the_vpa_targets_a_quantile_of_recent_use() -> None:
    history = synthetic_history()
    usage = np.full_like(history.usage_per_pod, np.nan)
    usage[0, CPU], usage[0, MEMORY] = 1.0, 2 * GIB
    usage[0, CPU, :-3] = 50.0  # long ago
    known = replace(history, usage_per_pod=usage)
    today = np.tile([0.3, GIB], (len(history.services), 1))
    found = vpa_requests(known, today)
    assert found[0, MEMORY] == pytest.approx(1.15 * 2 * GIB, rel=0.06)
    assert (found[1:] == today[1:]).all()
    usage[0, CPU, :] = 1.0
    assert vpa_requests(known, today)[0, CPU] == pytest.approx(1.15, rel=0.06)
