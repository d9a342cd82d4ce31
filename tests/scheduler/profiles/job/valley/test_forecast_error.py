"""The error of the cluster's load is that of one node with all pods, as the model's own composition has it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from forecast.composition import node_load
from forecast.history import Placements
from forecast.resources import CPU
from scheduler.profiles.job.valley.expected_load import is_real
from scheduler.profiles.job.valley.forecast_error import ClusterErrors
from tests.scheduler.profiles.job.valley.waiting_queue import EVENING
from tests.scorer.live_cluster import model
from tests.scorer.scorer_at import LiveScorer, tables


def test_it_is_the_spread_of_one_node_with_all_pods() -> None:
    live = LiveScorer(19.0, pods=EVENING)
    predicted = tables(live)
    found = ClusterErrors(live.scorer.tables.reading, is_real).of(predicted, live.clock.now)
    assert found is not None
    pods: Counter[int] = Counter()
    for row in range(4):
        pods.update({number: round(n) for number, n in predicted.load.pods_on(row).items()})
    numbers = sorted(pods)
    keys, replicas = [predicted.keys[n] for n in numbers], np.array([predicted.replicas_used(n) for n in numbers])
    own, shared = predicted.profiles.std_of(keys, replicas, predicted.horizon.today)
    usage = predicted.profiles.mean_of(keys, replicas, predicted.horizon.days[:1])
    service = np.repeat(np.arange(len(numbers)), [pods[n] for n in numbers])
    there = Placements(
        np.arange(len(service)), service, np.zeros_like(service), np.zeros_like(service), np.full_like(service, 48)
    )
    nothing, capacity = np.zeros((1, 48)), np.full(5, 160.0)
    common = float(model().cluster_std[CPU])
    load = node_load(there, usage[:, CPU], own[:, CPU] ** 2, shared[:, CPU] ** 2, nothing, nothing, common)
    share = np.zeros((5, 48))
    share[CPU] = load.mean[0] / 160.0
    np.testing.assert_allclose(found.of_share(share, capacity, np.arange(48))[CPU] * 160.0, load.std[0], rtol=1e-4)
    assert 0.005 < (load.std[0] / load.mean[0]).mean() < 0.5


def test_it_is_kept_for_ten_minutes_and_made_anew_for_other_tables() -> None:
    live = LiveScorer(19.0, pods=EVENING)
    errors = ClusterErrors(live.scorer.tables.reading, is_real)
    first = errors.of(tables(live), live.clock.now)
    for pod in EVENING[:24]:
        live.delete(pod)
    assert errors.of(tables(live), live.clock.now + 599) is first
    later = errors.of(tables(live), live.clock.now + 601)
    assert later is not None
    assert first is not None
    assert (later.of_pods[CPU] < first.of_pods[CPU]).all()
    other = tables(LiveScorer(19.0))
    assert errors.of(other, live.clock.now + 602) is None, "the tables were exchanged in between"
