"""How often recorded usage passed a recommendation, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoscaling.requests.recommendation_report import risk_of
from autoscaling.requests.recommending import LeftAlone, Recommendation
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey
from tests.autoscaling.capacity.tiny_prepared import N_SLOTS, steady


def recommended(cores: float, memory: float | None, because: LeftAlone | None = None) -> Recommendation:
    by_hour = np.where(np.arange(N_SLOTS) % 2 == 0, cores / 2, cores)
    hours = {"even": cores / 2, "odd": cores}
    return Recommendation(ServiceKey("a", "Deployment", "b"), 1.0, (1.0, 1.0), cores, hours, by_hour, memory, because)


def test_half_hours_of_single_pods_are_counted() -> None:
    recording = steady([1.0, 1.0], n_nodes=2).recording
    load = recording.load.copy()
    load[:, CPU] = 1.0
    load[0, CPU, : N_SLOTS // 4] = 3.0
    load[:, MEMORY] = 5.0
    there = replace(recording, load=load)
    found = [recommended(1.5, 5.0) for _ in range(there.n_services)]
    risk = risk_of(there, found)
    assert risk.of_all[0] == pytest.approx(1 / 8)
    # At even half hours 0.75 cores are passed always, at odd ones only in the first quarter of the first pod.
    assert risk.of_all[1] == pytest.approx(1 / 2 + 1 / 16)
    assert risk.of_all[2] == 0.0
    nothing = risk_of(there, [recommended(0.1, None, LeftAlone.ENDS) for _ in found])
    assert np.isnan(nothing.of_all).all() and np.isnan(nothing.cpu).all(), "services left alone have no risk"
