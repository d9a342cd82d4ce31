"""Which services are released on which day."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.hot_share import HOT_SHARE
from rebalancer.trajectory.trajectories import daily_releases
from scorer.replay.recording import Recording, record
from scorer.replay.window import replay_window
from tests.scorer.replay.small_cluster import N_SERVICES, small_cluster


@pytest.fixture(scope="module")
def recording() -> Recording:
    history, pods = small_cluster()
    return record(history, pods, replay_window(history), hot=HOT_SHARE)


@pytest.mark.parametrize(("share", "days", "released"), [(0.0, 7, 0), (0.2, 5, 5), (0.1, 10, 5), (1.0, 3, 15)])
def test_shares_of_services_add_up_over_the_days(recording: Recording, share: float, days: int, released: int) -> None:
    for seed in range(5):
        by_day = daily_releases(recording, days, share, seed)
        assert list(by_day) == list(range(days))
        assert sum(len(services) for services in by_day.values()) == released


def test_each_service_is_released_once_before_any_is_again(recording: Recording) -> None:
    released = np.concatenate(list(daily_releases(recording, 5, 0.2, seed=3).values()))
    np.testing.assert_array_equal(np.sort(released), np.arange(N_SERVICES))


def test_owners_of_jobs_are_not_released(recording: Recording) -> None:
    ending = np.ones(N_SERVICES, dtype=np.bool_)
    ending[2] = False
    released = daily_releases(replace(recording, ending=ending), 4, 0.5, seed=0)
    assert {int(s) for services in released.values() for s in services} == {2}
