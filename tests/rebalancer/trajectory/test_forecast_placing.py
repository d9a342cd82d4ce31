"""What placement by a forecast asks of the pods that run."""

from __future__ import annotations

import numpy as np

from rebalancer.trajectory.daily_outlook import requests_of_services
from tests.rebalancer.trajectory.tiny_recording import tiny_recording


def test_a_service_requests_what_the_largest_of_its_running_pods_does() -> None:
    recording = tiny_recording([1.0] * 5, [0] * 5, n_nodes=1, service=[0, 0, 0, 1, 2])
    recording.requests[:, 0] = [0.1, 0.4, 0.9, 0.2, 0.3]
    requests = requests_of_services(recording, np.array([0, 1, 3]))
    np.testing.assert_array_equal(requests[:, 0], [0.4, 0.2, 0.0])
    assert not requests_of_services(recording, np.array([], dtype=np.int64)).any()
