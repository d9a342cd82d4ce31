from __future__ import annotations

import numpy as np
import pytest

from autoscaling.autoscale_settings import CapacityOptions
from autoscaling.capacity.failure import NodeLoss
from autoscaling.capacity.fewest_nodes import is_large, sample_services
from autoscaling.capacity.nodes_needed import capacity
from tests.autoscaling.capacity.tiny_prepared import steady


def test_a_sample_holds_whole_services_with_their_curves() -> None:
    prepared = steady(list(np.linspace(0.5, 3.0, 40)), n_nodes=10)
    sample = sample_services(prepared, 8, seed=1)
    assert len(sample.recording.service) == sample.recording.n_services == 8
    kept = sample.recording.load[:, 0, 0]
    assert set(kept.tolist()) < set(prepared.recording.load[:, 0, 0].tolist())
    np.testing.assert_allclose(sample.forecasts["forecast"].mean[sample.recording.service, 0, 0], kept, rtol=1e-6)
    assert sample.recording.n_nodes == 10


def test_a_large_cluster_is_estimated_from_a_sample_and_others_are_not() -> None:
    prepared = steady([2.0] * 60, n_nodes=10)
    options = CapacityOptions(target=0.0, sample_pods=20)
    assert is_large(prepared, options)
    assert not is_large(prepared, options.replace(sample_pods=31)) and not is_large(
        prepared, options.replace(sample_pods=0)
    )
    found = capacity(prepared, options, rules=("forecast", "oracle"), failure=NodeLoss(nodes=3))
    assert found.searched_pods == 20 and found.to_json()["pods"] == 60
    assert found.rules["forecast"].nodes == 15  # four of two cores on each
    assert found.rules["forecast"].reserve == 18  # the sample loses one of six


def test_by_requests_all_pods_have_room_whatever_the_sample_requests() -> None:
    prepared = steady([2.0] * 60, n_nodes=10, requests=5.0)
    found = capacity(prepared, CapacityOptions(target=0.0, sample_pods=20), rules=("native", "forecast"))
    assert found.rules["native"].nodes == found.rules["forecast"].within_requests == 30
    assert found.rules["forecast"].nodes == pytest.approx(15)
