"""The replay of lending on a made-up week whose evenings are known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gpu_tide_week import TideWeek
from benchmarks.lending import RULES, Outcome, drawn_scene, play


@pytest.fixture(scope="module")
def played() -> dict[str, Outcome]:
    """Two days of twelve services that grow from 2 pods to 8 from 18:00 to 23:00."""
    day = np.full(48, 2.0)
    day[36:46] = 8.0
    services = np.tile(day, (12, 2))
    week = TideWeek(
        services=tuple(f"shop/Deployment/{n}" for n in range(12)),
        starts=1_779_148_800.0 + 1800.0 * np.arange(97, dtype=np.float64),
        replicas=services,
        before=services,
        forecast=np.tile(day, (12, 2, 7)),
    )
    scene = drawn_scene(week, 0, 0.9)
    return {rule: play(scene, rule) for rule in RULES}


def test_a_forecast_that_comes_true_spares_the_evictions_of_the_evening(played: dict[str, Outcome]) -> None:
    idle, ours = played["all idle"], played["by forecast"]
    assert idle.evicted > 20 and idle.late_in_ramp > 0
    assert ours.evicted <= 0.1 * idle.evicted and ours.kept > 0.5 * idle.kept


def test_the_true_future_lends_as_a_true_forecast_does(played: dict[str, Outcome]) -> None:
    assert played["by forecast"].kept == pytest.approx(played["true future"].kept, rel=0.05)


def test_all_rules_meet_the_same_owners(played: dict[str, Outcome]) -> None:
    assert len({one.grown for one in played.values()}) == 1 and played["all idle"].grown == 2 * 12 * 6
