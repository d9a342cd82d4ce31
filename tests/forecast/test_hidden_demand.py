"""Demand that limits hide: found where usage wobbles under a limit, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from base.arrays import Floats
from forecast.hidden_demand import RECENT_DAYS, HiddenDemand, hidden_demand
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU
from forecast.service_key import ServiceKey
from testing.fitted_models import fitted
from tests.forecast.test_limit_hits import NAN, hits_of
from tests.synthetic import synthetic_history
from trainer.audit.unknowns import ceiling

EVENING = 40
"""Slot of the day at which the synthetic services use most."""


def throttled(history: History, service: int, days: range, share: float = 0.4, cores: float = 5.0) -> History:
    """The history with a service that is throttled for three hours each evening."""
    slots = [48 * day + slot for day in days for slot in range(EVENING - 3, EVENING + 3)]
    return replace(history, limit_hits=hits_of(*((service, slot, share, cores, NAN) for slot in slots)))


def test_a_ceiling_that_wobbles_is_found_by_throttled_periods_alone() -> None:
    """The mean of replicas of which some are under their limit: no level is reached twice."""
    history = synthetic_history(noise=0.01)
    demand = history.usage_per_pod[5, CPU].astype(np.float64)
    pods = demand[None] * np.exp(0.4 * np.random.default_rng(1).normal(size=(4, *demand.shape)))
    history.usage_per_pod[5, CPU] = np.minimum(pods, 6.0).mean(axis=0)
    assert np.isnan(ceiling(history.usage_per_pod[5, CPU].reshape(1, -1))[0][0])
    found = hidden_demand(throttled(history, 5, range(28), cores=6.0))
    assert found.throttled[5] > 0.5 and found.cores[5] == pytest.approx(6.0)
    assert found.marked.sum() == 1
    [words] = found.words(5)
    assert words.endswith("of its peak half hours: real demand is hidden, at least 6 cores per pod")


@pytest.mark.parametrize(
    "history",
    [
        synthetic_history(),
        replace(synthetic_history(), limit_hits=hits_of()),
        throttled(synthetic_history(), 5, range(28), share=0.05),
        throttled(synthetic_history(), 5, range(28 - RECENT_DAYS)),  # its limit was raised since
        replace(synthetic_history(), limit_hits=hits_of(*((5, 48 * day + 6, 0.9, 1.0, NAN) for day in range(28)))),
        replace(throttled(synthetic_history(), 5, range(28)), limit_hits=hits_of((5, 7, 0.9, 1.0, NAN), seen=False)),
    ],
    ids=["nothing read", "never", "hardly", "long ago", "at night", "not counted"],
)
def test_nothing_is_hidden(history: History) -> None:
    assert not hidden_demand(history).marked.any()


def test_the_share_is_of_peak_half_hours_on_days_that_were_counted() -> None:
    half = throttled(synthetic_history(), 3, range(21, 28))
    assert half.limit_hits is not None
    everywhere = hidden_demand(half).throttled[3]
    half.limit_hits.seen[:, :21] = False
    counted = hidden_demand(half).throttled[3]
    assert 0.4 < everywhere < 0.6 and counted > 0.8


def test_an_oom_kill_tells_the_memory_that_was_too_little() -> None:
    hits = hits_of((1, 48 * 20, 0.0, NAN, 2.0**29), (1, 48 * 21, 0.0, NAN, 2.0**28), (2, 48 * 22, 0.0, NAN, 0.0))
    found = hidden_demand(replace(synthetic_history(), limit_hits=hits))
    assert (
        found.oom_kills.tolist() == [0, 2, 1, 0, 0, 0]
        and found.oom_bytes[1] == 2.0**29
        and np.isnan(found.oom_bytes[2])
    )
    assert list(found.words(1)) == ["OOM-killed in 2 half hours at 512 MiB: it needs more memory than it had"]
    assert list(found.words(2)) == ["OOM-killed in 1 half hour: it needs more memory than it had"]


def test_a_model_is_published_with_it() -> None:
    history = throttled(synthetic_history(), 5, range(28))
    model: PeakModel = fitted(history)
    found, known = HiddenDemand.of_info(model.info, model.services), hidden_demand(history)
    np.testing.assert_array_equal(found.throttled, known.throttled)
    np.testing.assert_array_equal(found.cores, known.cores)
    assert "hidden_demand" not in fitted(synthetic_history()).info


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"hidden_demand": None},
        {"hidden_demand": ["shop/Deployment/a"]},
        {"hidden_demand": {"shop/Deployment/a": "much"}},
        {"hidden_demand": {"shop/Deployment/a": [0.4, 1.0]}},
        {"hidden_demand": {"shop/Deployment/a": ["0.4", "1", None, {}]}},
        {"hidden_demand": {"shop/Deployment/a": [7.0, 1e12, -3, float("inf")]}},
    ],
)
def test_an_entry_that_cannot_be_true_is_left_out(info: dict[str, Any]) -> None:
    found = HiddenDemand.of_info(info, (ServiceKey("shop", "Deployment", "a"),))
    values: Floats = np.array([found.cores[0], found.oom_bytes[0]])
    assert not found.marked.any() and np.isnan(values).all()
