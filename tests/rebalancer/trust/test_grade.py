"""What the moves of a night were worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import AnyFloats, Floats
from base.errors import InputError
from forecast.resources import CPU, DISK, MEMORY, RESOURCES
from rebalancer.night_grades import Grade, PlanFacts, Verdict, gain_of_moves, grade
from rebalancer.rebalance_settings import RebalanceMode, TrustOptions
from testing.constants import with_constants

N_SLOTS, N_RESOURCES = 10, len(RESOURCES)
OPTIONS = TrustOptions()


def penalty(share: AnyFloats) -> AnyFloats:
    """1 at 0.9, nothing below 0.8."""
    return np.asarray(np.maximum(share - 0.8, 0) * 10)


def usage(*cores: float) -> Floats:
    """Nodes or pods with so many cores in every slot, and nothing else."""
    found = np.zeros((len(cores), N_RESOURCES, N_SLOTS))
    found[:, CPU] = np.array(cores)[:, None]
    return found


def capacity(n_nodes: int, cores: float = 10) -> Floats:
    limits = np.full((n_nodes, N_RESOURCES), np.nan)
    limits[:, CPU] = cores
    return limits


def facts(predicted: float, *moves: tuple[int, int], made: list[bool] | None = None) -> PlanFacts:
    source, target = (np.array([move[side] for move in moves], dtype=np.int64) for side in (0, 1))
    done = np.array([True] * len(moves) if made is None else made, dtype=bool)
    return PlanFacts(predicted, np.ones(len(moves)), source, target, done)


def graded(
    plan: PlanFacts, lived: Floats, moved: Floats, *, mode: RebalanceMode = RebalanceMode.ON, **options: Any
) -> Grade:
    limits = capacity(len(lived))
    return grade(
        plan, lived, moved, limits, with_constants(TrustOptions(), **options), mode=mode, hot=0.8, penalty=penalty
    )


def test_what_was_measured_is_with_the_moves_if_they_were_made() -> None:
    # Node 0 has 7 cores of load left; without the move it would have had 9: ten slots of heat 1.
    found = graded(facts(10, (0, 1)), usage(7, 6), usage(2))
    assert found.verdict is Verdict.GOOD
    assert found.realised_gain == pytest.approx(10) and (found.prevented, found.newly_hot) == (10, 0)
    assert "10.0 of 10.0" in found.because
    # In shadow what was measured is without them; the night has the same grade.
    assert graded(facts(10, (0, 1), made=[False]), usage(9, 4), usage(2), mode=RebalanceMode.SHADOW) == found


@pytest.mark.parametrize(
    ("lived", "verdict"),
    [
        ((7.0, 6.0), Verdict.GOOD),  # 10 of 10
        ((6.6, 6.0), Verdict.GOOD),  # 6 of 10
        ((6.4, 6.0), Verdict.BAD),  # 4 of 10
        ((3.0, 6.0), Verdict.BAD),  # a calm evening: nothing was to be prevented
        ((7.0, 9.0), Verdict.BAD),  # the target became hot instead
    ],
)
def test_bad_is_less_than_half_or_newly_hot_targets(lived: tuple[float, float], verdict: Verdict) -> None:
    assert graded(facts(10, (0, 1)), usage(*lived), usage(2)).verdict is verdict


def test_a_small_prediction_is_bad_for_a_loss_and_not_for_gaining_little() -> None:
    assert graded(facts(1.9, (0, 1)), usage(3, 4), usage(2)).verdict is Verdict.UNKNOWN
    assert graded(facts(2.1, (0, 1)), usage(3, 4), usage(2)).verdict is Verdict.BAD
    assert graded(facts(1.9, (0, 1)), usage(7, 6), usage(2)).verdict is Verdict.GOOD
    assert graded(facts(float("nan"), (0, 1)), usage(7, 6), usage(2)).verdict is Verdict.UNKNOWN
    lost = graded(facts(0.5, (0, 1)), usage(3, 9.5), usage(2), newly_hot_share=1)
    assert lost.realised_gain < 0 and lost.verdict is Verdict.BAD


def test_one_newly_hot_half_hour_is_no_pattern() -> None:
    lived = usage(7, 6)
    lived[1, CPU, 0] = 8.5
    assert graded(facts(10, (0, 1)), lived, usage(2), newly_hot_share=0).verdict is Verdict.GOOD
    lived[1, CPU, 1] = 8.5
    bad = graded(facts(10, (0, 1)), lived, usage(2), newly_hot_share=0)
    assert bad.verdict is Verdict.BAD and "2 half hours became hot" in bad.because


def test_only_moves_that_were_made_count_and_only_their_share_of_the_prediction() -> None:
    lived, moved = usage(7, 6, 9, 4), usage(2, 2)
    found = graded(facts(20, (0, 1), (2, 3), made=[True, False]), lived, moved)
    assert found.predicted_gain == 10 and found.realised_gain == pytest.approx(10)


def test_nights_without_moves() -> None:
    none = graded(facts(0), usage(9), usage())
    assert none.verdict is Verdict.NO_MOVES and "planned" not in none.because
    assert graded(facts(0), usage(9), usage(), mode=RebalanceMode.SHADOW).verdict is Verdict.NO_MOVES
    assert graded(facts(9, (0, 1), made=[False]), usage(9, 4), usage(2)).verdict is Verdict.NO_MOVES


@pytest.mark.parametrize("missing", ["node", "pod"])
def test_too_little_data_is_unknown_and_some_is_enough(missing: str) -> None:
    def lacking(n: int) -> Grade:
        lived, moved = usage(7, 6), usage(2)
        (lived if missing == "node" else moved)[0, CPU, :n] = np.nan
        return graded(facts(10, (0, 1)), lived, moved)

    if missing == "node":
        # The target is measured in all slots, so that 4 missing ones of the source are a fifth of the readings.
        assert lacking(4).coverage == 0.8 and lacking(4).verdict is Verdict.GOOD
        assert lacking(7).verdict is Verdict.UNKNOWN
    else:
        assert lacking(3).coverage == 0.7 and lacking(3).verdict is Verdict.GOOD
        assert lacking(4).verdict is Verdict.UNKNOWN and "60%" in lacking(4).because
    assert lacking(10).verdict is Verdict.UNKNOWN


def test_a_resource_that_nobody_measures_is_left_out() -> None:
    lived, moved, limits = usage(7, 6), usage(2), capacity(2)
    limits[:, DISK] = 100
    lived[:, DISK] = np.nan
    found = grade(facts(10, (0, 1)), lived, moved, limits, OPTIONS, mode=RebalanceMode.ON, hot=0.8, penalty=penalty)
    assert found.coverage == 1 and found.verdict is Verdict.GOOD


def test_the_worst_resource_counts_and_memory_does_not() -> None:
    lived, moved, limits = usage(5, 3), usage(1), np.full((2, N_RESOURCES), 10.0)
    lived[0, MEMORY], lived[0, DISK], moved[0, DISK] = 9.9, 7.0, 2.0
    found = grade(facts(10, (0, 1)), lived, moved, limits, OPTIONS, mode=RebalanceMode.ON, hot=0.8, penalty=penalty)
    assert found.realised_gain == pytest.approx(10) and found.prevented == 10


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(moves, resources, slots\)"):
        gain_of_moves(usage(9, 4), usage(2, 2), np.array([0]), np.array([1]), capacity(2), penalty, hot=0.8, made=True)


@given(st.data())
def test_adding_back_what_moved_is_the_reverse_of_moving_it(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    n_nodes, n_moves = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 6))
    source = rng.integers(0, n_nodes, n_moves)
    target = (source + rng.integers(1, n_nodes, n_moves)) % n_nodes
    pods = rng.uniform(0, 2, (n_moves, N_RESOURCES, N_SLOTS))
    before = rng.uniform(6, 12, (n_nodes, N_RESOURCES, N_SLOTS)) + pods.sum(axis=0)
    after = before.copy()
    for n in range(n_moves):  # the slow way
        after[source[n]] -= pods[n]
        after[target[n]] += pods[n]
    limits = rng.uniform(8, 20, (n_nodes, N_RESOURCES))
    args = (pods, source, target, limits, penalty)
    planned = gain_of_moves(before, *args, hot=0.8, made=False)
    lived = gain_of_moves(after, *args, hot=0.8, made=True)
    assert planned.gain == pytest.approx(lived.gain, abs=1e-6) and planned.coverage == lived.coverage == 1
    hot = [i for i, r in enumerate(RESOURCES) if r.counts_as_hot]
    shares = [(load[:, hot] / limits[:, hot, None]).max(axis=1) for load in (before, after)]
    assert planned.gain == pytest.approx(float(penalty(shares[0]).sum() - penalty(shares[1]).sum()), abs=1e-6)
