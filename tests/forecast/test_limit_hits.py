"""Half hours in which limits held pods back, folded into services, sliced with their history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecast.limit_hits import LimitHits, PodHits
from tests.synthetic import synthetic_history

NAN = np.nan


def hits_of(
    *entries: tuple[int, int, float, float, float], n_services: int = 6, n_days: int = 28, seen: bool = True
) -> LimitHits:
    """entries: service, slot, throttled share, cores, memory at a kill. seen: counters were read on every day"""
    columns = np.array(entries, dtype=np.float64).reshape(-1, 5).T
    service, slot = columns[:2].astype(np.int64)
    throttled, cores, oom_bytes = columns[2:].astype(np.float32)
    return LimitHits(service, slot, throttled, cores, oom_bytes, np.full((n_services, n_days), seen))


def test_pods_are_folded_into_services() -> None:
    # Pods 0 to 3 are of service 0, which has four replicas; pod 4 alone is service 1.
    hits = PodHits(
        pod=np.array([0, 1, 2, 4, 4]),
        slot=np.array([7, 7, 7, 7, 50]),
        throttled=np.array([0.8, 0.4, 0.02, NAN, 0.5], dtype=np.float32),
        cores=np.full(5, NAN, dtype=np.float32),
        oom_bytes=np.array([NAN, NAN, NAN, 3e8, NAN], dtype=np.float32),
        seen=np.ones((2, 2), dtype=np.bool_),
    )
    cpu = np.arange(5.0)[:, None] + np.zeros(48)
    hits.measure(np.arange(5), 0, cpu)
    hits.measure(np.array([0, 2]), 1, 10 + cpu[:2])  # pod 4 was not there
    replicas = np.repeat([[4.0], [1.0]], 96, axis=1).reshape(2, 2, 48).astype(np.float32)
    found = hits.of_services(np.array([0, 0, 0, 0, 1]), replicas)
    assert found.service.tolist() == [0, 1, 1] and found.slot.tolist() == [7, 7, 50]
    np.testing.assert_allclose(found.throttled, [(0.8 + 0.4 + 0.02) / 4, 0.0, 0.5], rtol=1e-6)
    np.testing.assert_allclose(found.cores, [1.0, NAN, NAN])  # of pod 1: pod 2 was hardly throttled
    np.testing.assert_allclose(found.oom_bytes, [NAN, 3e8, NAN])


def test_a_history_takes_its_hits_along() -> None:
    hits = hits_of((0, 47, 0.5, 1.0, NAN), (2, 48 * 20 + 3, 0.3, 2.0, NAN), (5, 48 * 27, 0.0, NAN, 1e9))
    history = replace(synthetic_history(), limit_hits=hits)
    late = history.before(28, keep=8).limit_hits
    assert late is not None and late.seen.shape == (6, 8)
    assert list(zip(late.service.tolist(), late.slot.tolist(), strict=True)) == [(2, 3), (5, 48 * 7)]
    early = history.before(10).limit_hits
    assert early is not None and early.slot.tolist() == [47]
    left = history.without(np.arange(6) == 2).limit_hits
    assert left is not None and left.service.tolist() == [0, 4] and left.seen.shape == (5, 28)
    later = hits.later(2)
    assert later.slot.tolist() == [47 + 96, 48 * 22 + 3, 48 * 29] and not later.seen[:, :2].any()
    assert history.digest() != replace(history, limit_hits=None).digest()
