"""What `benchmarks.replay` says of pods that are placed together."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.replay_together import (
    LARGEST_FIRST,
    NAMES,
    ONE_BY_ONE,
    Placed,
    largest_first,
    placed_together,
    print_summary,
    summary,
    together,
)
from forecast.arrays import Floats
from scorer.replay.replay import Replay, replay
from scorer.replay.report import RuleFigures
from tests.scorer.replay.simple_forecast import simple_forecast
from tests.scorer.replay.small_cluster import small_cluster


@pytest.fixture(scope="module")
def played() -> Replay:
    return replay(*small_cluster(), simple_forecast, seed=1, ladder=False)


def test_one_by_one_is_what_the_replay_has_found(played: Replay) -> None:
    placed = placed_together(played)
    assert tuple(placed) == NAMES
    for rule in ONE_BY_ONE:
        assert placed[rule].figures.hot_share == played.figures[rule].hot_share
        assert placed[rule].figures.peak_cv == played.figures[rule].peak_cv
    assert any(placed[together(rule)].figures.peak_cv != placed[rule].figures.peak_cv for rule in ONE_BY_ONE)


def test_the_largest_pods_come_first(played: Replay) -> None:
    recording, forecast = played.recording, played.forecasts["forecast"]
    pods = largest_first(recording, forecast)(np.arange(len(recording.service)))
    total = np.nansum(recording.known_capacity, axis=0)
    peak = [
        max(forecast.mean[recording.service[pod], r].max() / total[r] for r in range(len(total)) if total[r] > 0)
        for pod in pods.tolist()
    ]
    assert peak == sorted(peak, reverse=True)


def figures(*daily: float) -> Placed:
    hot = RuleFigures(float(np.mean(daily)), {"cpu": 0.1}, {}, {}, 0, daily_hot_share=daily)
    return Placed(hot, 0.002)


def mean_of(paired: Floats) -> dict[str, float]:
    return {"mean": float(paired.mean()), "low": 0.0, "high": 0.0}


def test_the_rival_is_last_week_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    same = dict.fromkeys(NAMES, figures(0.02, 0.04))
    better = {**same, "oracle": figures(0.01, 0.03), together("forecast"): figures(0.02, 0.03)}
    worse = {**better, together("forecast"): figures(0.03, 0.04), LARGEST_FIRST: figures(0.05, 0.05)}
    result = summary([better, worse], mean_of)
    ours = result[together("forecast")]
    assert ours["gap_to_true_future_closed"] == pytest.approx(0.0)  # one seed half a point better, the other worse
    assert ours["worst_seed_behind_last_week"] == pytest.approx(0.005)
    assert result["oracle"]["gap_to_true_future_closed"] == pytest.approx(1.0)
    assert result[LARGEST_FIRST]["minus_last_week"]["mean"] == pytest.approx(0.01)
    assert ours["ms_per_pod"] == pytest.approx(2.0)
    print_summary(result)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(NAMES)
    assert summary([same], mean_of)["oracle"]["gap_to_true_future_closed"] is None
