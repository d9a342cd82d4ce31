"""The what-if that last week cannot know: totals stay, pods are halved, and only the forecast reckons with it."""

from __future__ import annotations

import numpy as np
import pytest

from base.arrays import Floats
from forecast.fit import fit
from forecast.history import History, PodUsage
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU
from scorer.replay.preparation import SLOTS_BEFORE, doubled_replicas, forecast_with
from scorer.replay.replay import Replay, replay
from scorer.replay.window import flat, replay_window
from tests.scorer.replay.small_cluster import REPLICAS, small_cluster

CHOSEN = np.array([0, 2])
N_TWINS = sum(REPLICAS[service] for service in CHOSEN)


def changed() -> tuple[History, PodUsage]:
    history, pods = small_cluster()
    return doubled_replicas(history, pods, replay_window(history), CHOSEN)


def test_twice_the_replicas_share_the_load_and_the_requests_of_their_service() -> None:
    history, pods = small_cluster()
    moment = replay_window(history).history_slot - SLOTS_BEFORE
    later, together = changed()
    assert len(together.pods) == len(set(together.pods)) == len(pods.pods) + N_TWINS
    assert not flat(together.present)[-N_TWINS:, :moment].any()
    np.testing.assert_allclose(_totals(together), _totals(pods), rtol=1e-6)
    np.testing.assert_allclose(_requests_at_the_end(together), _requests_at_the_end(pods))
    factor = flat(later.replicas) / flat(history.replicas)  # (n_services, n_slots)
    assert (factor[:, :moment] == 1).all()
    assert (factor[CHOSEN, moment:] == 2).all()
    assert (np.delete(factor, CHOSEN, axis=0) == 1).all()
    np.testing.assert_array_equal(flat(later.usage_per_pod) * factor[:, None], flat(history.usage_per_pod))


@pytest.fixture(scope="module")
def as_it_was_and_doubled() -> tuple[Replay, Replay]:
    forecasts = forecast_with(fit)
    return replay(*small_cluster(), forecasts, seed=3, ladder=False, hot=HOT_SHARE), replay(
        *changed(), forecasts, seed=3, ladder=False, hot=HOT_SHARE
    )


@pytest.mark.parametrize(("rule", "share"), [("last_week", 1.0), ("forecast", 0.5), ("oracle", 0.5)])
def test_the_forecast_expects_half_of_each_pod_and_last_week_all_of_it(
    as_it_was_and_doubled: tuple[Replay, Replay], rule: str, share: float
) -> None:
    before, after = (one.forecasts[rule].mean[CHOSEN, CPU].mean() for one in as_it_was_and_doubled)
    assert after / before == pytest.approx(share, abs=0.02)


def _totals(pods: PodUsage) -> Floats:
    """(n_services, n_resources, n_slots) of all pods together."""
    load = np.nan_to_num(flat(pods.usage)) * flat(pods.present)[:, None]
    totals = np.zeros((len(REPLICAS), *load.shape[1:]))
    np.add.at(totals, pods.service, load)
    return totals


def _requests_at_the_end(pods: PodUsage) -> Floats:
    there = flat(pods.present)[:, -1] > 0
    totals = np.zeros((len(REPLICAS), 2))
    np.add.at(totals, pods.service[there], pods.requests[there])
    return totals
