"""Pods that have left still show in metrics that average over the time in which they were there."""

from __future__ import annotations

import numpy as np
import pytest

from cluster.live.charges import Departed

WINDOW = 300.0
USE = np.array([2.0, 20.0])


@pytest.mark.parametrize(
    ("started", "sampled", "share"),
    [
        (-9000.0, -100.0, 1.0),  # measured before it left
        (-9000.0, 0.0, 1.0),
        (-9000.0, 150.0, 0.5),
        (-9000.0, 300.0, 0.0),
        (-9000.0, 900.0, 0.0),
        (-9000.0, np.nan, 0.0),
        (-30.0, 0.0, 0.1),  # it ran for half a minute only
        (-30.0, 285.0, 0.05),
        (-30.0, -60.0, 0.0),
        (50.0, 100.0, 0.0),  # clocks that disagree: it left before it started
    ],
)
def test_metrics_hold_what_a_pod_used_in_their_window(started: float, sampled: float, share: float) -> None:
    departed = Departed(WINDOW)
    departed.add(1, USE, started, 0.0)
    held = departed.in_metrics(np.array([0.0, sampled]), 2)
    np.testing.assert_allclose(held, [0 * USE, share * USE], atol=1e-12)


def test_pods_are_forgotten_once_no_window_holds_them_and_unmeasured_nodes_are_no_trouble() -> None:
    departed = Departed(WINDOW)
    departed.add(7, USE, -9000.0, 0.0)
    assert not departed.in_metrics(np.zeros(2), 2).any()
    for now, left in ((100.0, True), (601.0, False), (-7200.0, False)):
        departed = Departed(WINDOW)
        departed.add(0, USE, -9000.0, 0.0)
        departed.forget(now)
        assert departed.in_metrics(np.zeros(1), 2).any() == left
