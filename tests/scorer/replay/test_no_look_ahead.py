"""With the real fit: whatever comes after the placement, only the oracle places by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from base.arrays import AnyFloats, Floats32
from forecast.fit import fit
from forecast.history import History, Placements, PodUsage
from forecast.hot_share import HOT_SHARE
from scorer.replay.preparation import forecast_with
from scorer.replay.replay import replay
from scorer.replay.window import flat, replay_window
from tests.scorer.replay.small_cluster import N_NODES, REPLICAS, by_day, curves, small_cluster


def another_future() -> tuple[History, PodUsage]:
    """The small cluster, all of it different from the placement on: usage, counts, nodes, placements, later pods."""
    window = replay_window(small_cluster()[0])
    moment = window.history_slot
    cpu = curves()
    cpu[:, moment:] = cpu[::-1, moment:] * 3
    history, pods = small_cluster(cpu=cpu)

    def from_then_on(by_slot: AnyFloats, factor: float, more: float) -> Floats32:
        changed = flat(by_slot).copy()
        changed[..., moment:] = changed[..., moment:] * factor + more
        return by_day(changed)

    runs = history.placements
    before, after = runs.first < moment, runs.end > moment
    requests = history.daily_requests.copy()
    requests[..., window.first_day :] *= 5.0
    history = replace(
        history,
        daily_requests=requests,
        replicas=from_then_on(history.replicas, 3.0, 2.0),
        pod_variance=from_then_on(history.pod_variance, 1.0, 0.5),
        node_usage=from_then_on(history.node_usage, 2.0, 1.0),
        node_pod_usage=from_then_on(history.node_pod_usage, 0.5, 0.0),
        placements=Placements(
            pod=np.concatenate([runs.pod[before], runs.pod[after]]),
            service=np.concatenate([runs.service[before], runs.service[after]]),
            node=np.concatenate([runs.node[before], (runs.node[after] + 1) % N_NODES]),
            first=np.concatenate([runs.first[before], np.maximum(runs.first[after], moment)]),
            end=np.concatenate([np.minimum(runs.end[before], moment), runs.end[after]]),
        ),
    )
    born = flat(pods.present).argmax(axis=1)
    later = born >= moment
    kept = ~later | (np.arange(len(born)) % 3 > 0)
    # Those that still come are of another service, larger, and stay to the end.
    present = flat(pods.present).copy()
    present[later] = np.arange(present.shape[1]) >= born[later, None]
    changed = PodUsage(
        days=pods.days,
        services=pods.services,
        pods=tuple(np.array(pods.pods)[kept]),
        service=np.where(later, 0, pods.service)[kept],
        requests=np.where(later[:, None], 2.0, 1.0)[kept] * pods.requests[kept],
        usage=pods.usage[kept],
        present=by_day(present)[kept],
        node=((pods.node + 1) % N_NODES)[kept],
        row=pods.row[kept],
    )
    return history, changed


def test_no_rule_but_the_oracle_sees_what_comes_after_the_placement() -> None:
    forecasts = forecast_with(fit)
    as_it_was = replay(*small_cluster(), forecasts, seed=3, ladder=False, hot=HOT_SHARE)
    otherwise = replay(*another_future(), forecasts, seed=3, ladder=False, hot=HOT_SHARE)
    n = sum(REPLICAS)
    for played in (as_it_was, otherwise):
        assert (played.recording.birth[:n] == 0).all()
        assert (played.recording.birth[n:] > 0).all()
    assert len(as_it_was.recording.birth) != len(otherwise.recording.birth)
    for name in ("native", "live", "last_week", "forecast"):
        np.testing.assert_array_equal(
            as_it_was.playbacks[name].node[:n], otherwise.playbacks[name].node[:n], err_msg=name
        )
    assert (as_it_was.playbacks["oracle"].node[:n] != otherwise.playbacks["oracle"].node[:n]).any()
