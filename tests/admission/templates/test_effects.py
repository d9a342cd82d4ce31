"""Figures of groups of pods against slow loops, and when a difference is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.templates.effects import Difference, EffectGroup, SeatedPods, difference, effect_of, group_effect
from forecast.hot_share import HOT_SHARE

CASES = st.lists(st.tuples(st.floats(0, 2) | st.just(float("nan")), st.integers(0, 9)), max_size=20)


def seated(peaks: list[float], **pods: list[int]) -> SeatedPods:
    counts = {EffectGroup(name): np.array(of) for name, of in pods.items()}
    return SeatedPods("pool", np.array(peaks), counts)


def told(of: SeatedPods, seed: int = 0) -> Difference:
    effect = effect_of(of, np.random.default_rng(seed), HOT_SHARE)
    assert effect.difference is not None, effect.untold
    assert not effect.untold
    return effect.difference


@given(CASES)
def test_a_group_is_the_mean_over_its_pods(cases: list[tuple[float, int]]) -> None:
    peaks, pods = [peak for peak, _ in cases], [count for _, count in cases]
    effect = group_effect(np.array(peaks, dtype=np.float64), np.array(pods, dtype=np.int64), HOT_SHARE)
    each = [peak for peak, count in cases for _ in range(count) if not np.isnan(peak)]
    assert effect.pods == sum(pods)
    assert effect.nodes == sum(count > 0 for count in pods)
    if not each:
        assert np.isnan([effect.mean_peak, effect.highest_peak, effect.hot_share]).all()
        return
    assert effect.mean_peak == pytest.approx(np.mean(each))
    assert effect.highest_peak == max(each)
    assert effect.hot_share == pytest.approx(np.mean([peak > HOT_SHARE for peak in each]))


def test_intervals_hold_and_pods_that_share_nodes_are_no_witnesses() -> None:
    peaks = np.random.default_rng(5).uniform(0, 1, 40).tolist()
    few = told(seated(peaks, canary=[1] * 20 + [0] * 20, control=[0] * 20 + [1] * 20))
    many = told(seated(peaks, canary=[50] * 20 + [0] * 20, control=[0] * 20 + [50] * 20))
    assert many.high - many.low == pytest.approx(few.high - few.low)
    # Both groups are drawn alike: 95 % of the intervals should hold 0; percentile ones of few nodes miss some.
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        of = seated(rng.uniform(0.2, 0.9, 30).tolist(), canary=[1] * 15 + [0] * 15, control=[0] * 15 + [1] * 15)
        found = difference(of, rng)
        held += found.low <= 0 <= found.high
    assert 176 <= held < 200


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (seated([0.5], shaped=[9]), "not on trial"),
        (seated([0.5] * 4, canary=[4, 0, 0, 0], control=[3, 3, 3, 3]), "too few pods to tell: 4 canary placed, 5"),
        (seated([0.5] * 4, canary=[3, 3, 3, 3]), "too few pods to tell: 0 control placed, 5 needed"),
        (
            seated([0.5, 0.5, np.nan, np.nan], canary=[3, 3, 3, 3], control=[0, 2, 9, 9]),
            "too few nodes to tell: the canary pods sit on 2, 3 needed",
        ),
        (
            seated([0.5, 0.5, 0.5, np.nan], canary=[3, 3, 3, 3], control=[0, 2, 0, 9]),
            "too few pods to tell: 2 control on nodes with a predicted peak, 5 needed",
        ),
        (
            seated([0.5] * 4, canary=[9, 9, 0, 0], control=[3, 3, 3, 3]),
            "too few nodes to tell: the canary pods sit on 2",
        ),
    ],
)
def test_too_little_is_not_compared(of: SeatedPods, reason: str) -> None:
    effect = effect_of(of, np.random.default_rng(0), HOT_SHARE)
    assert effect.difference is None
    assert reason in effect.untold


@settings(max_examples=50, deadline=None)
@given(CASES, st.lists(st.integers(0, 9), min_size=20, max_size=20))
def test_whatever_is_there_has_finite_figures_or_a_reason(cases: list[tuple[float, int]], control: list[int]) -> None:
    peaks, canary = [peak for peak, _ in cases], [count for _, count in cases]
    effect = effect_of(seated(peaks, canary=canary, control=control[: len(cases)]), np.random.default_rng(0), HOT_SHARE)
    assert (effect.difference is None) == bool(effect.untold)
    if effect.difference is not None:
        assert effect.difference.low <= effect.difference.high
        assert np.isfinite([effect.difference.low, effect.difference.mean, effect.difference.high]).all()


def test_a_difference_that_is_there_is_told() -> None:
    peaks = [0.3, 0.35, 0.25, 0.3, 0.9, 0.85, 0.95, 0.9]
    found = told(seated(peaks, canary=[2] * 4 + [0] * 4, control=[0] * 4 + [2] * 4))
    assert found.mean == pytest.approx(-0.6)
    assert found.low < found.mean < found.high < 0
    assert found.is_clear
