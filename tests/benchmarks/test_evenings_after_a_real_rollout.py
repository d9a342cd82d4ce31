"""Pods placed by the real kube-scheduler with the extender as shipped, and the evenings that really followed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evening_rollout import evening_rollout
from benchmarks.real_burst import CHARGES, burst, cpu_peaks, place_burst
from benchmarks.real_rollout import ADVISOR, EXTENDER, PREFER, RolloutOutcome, gap_closed, roll_out
from benchmarks.real_scheduler import Cluster
from forecast.arrays import Floats
from forecast.resources import CPU

pytestmark = pytest.mark.alone

BATCHES = [(0, 1), (2, 3), (0, 1, 2, 3)]
"""Seeds. One rollout is up to chance: kube-scheduler draws lots among equal nodes, and one pod too many makes a node
hot. Where two rollouts do not decide four do, or eight."""


@pytest.mark.parametrize("way", [EXTENDER, *(pytest.param(one, marks=pytest.mark.long) for one in (ADVISOR, PREFER))])
def test_most_of_the_gap_to_those_who_know_the_future_is_closed(tmp_path: Path, way: str) -> None:
    today = datetime.now(UTC).date()
    outcomes: list[RolloutOutcome] = []
    for batch, seeds in enumerate(BATCHES):
        outcomes += [roll_out(evening_rollout(today, seed=s), tmp_path / f"{batch}-{s}", [way]) for s in seeds]
        if gap_closed(outcomes, way) >= 0.8:
            break
    assert gap_closed(outcomes, way) >= 0.8, outcomes


BURSTS = (3, 2, 2)
"""Bursts placed before it is looked at their medians, and as many again where these do not decide."""


@pytest.mark.long
def test_a_burst_within_one_metric_interval_does_not_pile_up(tmp_path: Path) -> None:
    """Medians: where a single burst ends is up to chance, without the charge above all.

    The extender hears of each binding with a fixed lag, as on a busy API server. Without one it would be up to the
    speed of this machine how many pods of the last moments it does not know of, and with it how much they pile up.
    """
    peaks: list[list[Floats]] = []  # by burst; without the charge, as shipped
    for more in BURSTS:
        peaks += [burst_peaks(tmp_path, number) for number in range(len(peaks), len(peaks) + more)]
        variation = np.median([[of.std() / of.mean() for of in one] for one in peaks], axis=0)
        highest = np.median([[of.max() for of in one] for one in peaks], axis=0)
        if variation[1] < 0.7 * variation[0] and highest[1] < 1.0 < highest[0]:
            break
    assert variation[1] < 0.7 * variation[0], peaks
    assert highest[1] < 1.0 < highest[0], peaks


def burst_peaks(directory: Path, number: int) -> list[Floats]:
    """(n_nodes,) CPU peaks without the charge, and as shipped."""
    of = burst(number)
    with Cluster(of, directory / str(number)) as cluster:
        placements = [place_burst(cluster, charge) for charge in CHARGES.values()]
    used = [np.tensordot(of.capacity[:, CPU], of.node_shares(one)[:, CPU], axes=1) for one in placements]
    np.testing.assert_allclose(used[0], used[1], rtol=1e-9)  # cores at each half hour: it is the same load
    return [cpu_peaks(of, placement) for placement in placements]
