from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast.arrays import Floats
from scheduler.profiles.gpu.tide.demand import Demand, ServiceUse, demand_ahead
from scheduler.profiles.gpu.tide.move_reasons import reason
from scheduler.profiles.gpu.tide.options import TideOptions
from scheduler.profiles.gpu.tide.replica_levels import Stretches, filled
from scheduler.profiles.gpu.tide.tide_plan import Kind, Move, Training, after_move, decide
from tests.scheduler.profiles.gpu.tide.tide_world import NOON, PLAIN, SLOT, demand, training

ALL_DAY = 48


def moves(trainings: list[Training], ahead: Demand, now: float = NOON, options: TideOptions = PLAIN) -> dict[str, Move]:
    return {move.training.key: move for move in decide(trainings, ahead, now, options, UTC)[0]}


def levels(trainings: list[Training], ahead: Demand, now: float = NOON, options: TideOptions = PLAIN) -> list[int]:
    made = moves(trainings, ahead, now, options)
    return [made[one.key].after if one.key in made else one.replicas for one in trainings]


def test_training_shrinks_its_drain_time_before_inference_needs_the_gpus() -> None:
    """8 of 16 GPUs are needed now, 12 from 12:30 on; draining takes ten minutes."""
    ahead = demand([8] + [12] * (ALL_DAY - 1))
    one = training(replicas=4)
    assert not moves([one], ahead, NOON)
    assert not moves([one], ahead, NOON + SLOT - 601)
    move = moves([one], ahead, NOON + SLOT - 600)[one.key]
    assert (move.kind, move.before, move.after, move.gpus) == (Kind.SHRINK, 4, 2, 4)
    assert "by 12:30 inference is predicted to need 12 GPUs of 16, shop/Deployment/rank 4.0 more" in reason(
        move, ahead, UTC
    )
    assert "draining takes 10 min" in reason(move, ahead, UTC)


def test_fair_among_trainings_by_gpus_above_their_minimum() -> None:
    a, b = training("a/Job/a", replicas=6), training("b/Job/b", gpus=4.0, replicas=2)
    assert levels([a, b], demand([0] * ALL_DAY, capacity=20)) == [6, 2]
    assert levels([a, b], demand([8] * ALL_DAY, capacity=20)) == [2, 2], "a has 10 above its minimum, b 4"
    small, large = training("a/Job/a", replicas=1), training("b/Job/b", replicas=1)
    assert levels([small, large], demand([4] * ALL_DAY)) == [3, 3]


def test_an_inelastic_training_is_taken_last_and_whole_and_resumes_whole() -> None:
    whole = training("b/Job/whole", replicas=3, least=3, most=3)
    elastic = training("a/Job/elastic", replicas=4)
    assert levels([elastic, whole], demand([8] * ALL_DAY)) == [1, 3]
    made = moves([elastic, whole], demand([12] * ALL_DAY))
    assert {key: (one.kind, one.after) for key, one in made.items()} == {
        elastic.key: (Kind.SHRINK, 2),
        whole.key: (Kind.TAKE, 0),
    }, "6 GPUs do not fit into the 4 that are left"
    stopped = replace(whole, replicas=0, taken=True, moved=NOON - 7200, moves=1)
    resumed = moves([stopped], demand([10] * ALL_DAY))[whole.key]
    assert (resumed.kind, resumed.after) == (Kind.RESUME, 3)
    assert not moves([stopped], demand([11] * ALL_DAY)), "two of three are of no use"


def test_who_is_stopped_first_elastic_then_less_important_then_younger() -> None:
    old = training("a/Job/old", replicas=2, least=2, most=2, created=1.0)
    young = training("b/Job/young", replicas=2, least=2, most=2, created=2.0)
    low = training("c/Job/low", replicas=2, least=2, most=2, priority=-1)
    elastic = training("d/Job/elastic", replicas=2, least=2, most=4, priority=5)
    everyone = [old, young, low, elastic]
    found = [levels(everyone, demand([16 - 4 * left] * ALL_DAY)) for left in (4, 3, 2, 1, 0)]
    assert found == [[2, 2, 2, 2], [2, 2, 2, 0], [2, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    assert levels(everyone, demand([16] * ALL_DAY), options=PLAIN.replace(take_whole=False)) == [2, 2, 2, 2]
    _, lacking = decide(everyone, demand([10] * ALL_DAY), NOON, PLAIN.replace(take_whole=False), UTC)
    assert lacking.tolist() == [10.0]


def test_the_cap_of_all_together() -> None:
    capped = PLAIN.replace(moves_per_day=3)
    many = [training(f"a/Job/{n}", gpus=1.0, replicas=1, most=2) for n in range(6)]
    made = moves(many, demand([0] * ALL_DAY), options=capped)
    assert len(made) == 2, "one is kept for shrinking"
    some = [replace(one, replicas=2) for one in many]
    assert len(moves(some, demand([10] * ALL_DAY), options=capped)) == 6


def test_the_last_move_of_a_day_lasts_the_day() -> None:
    """Else the evening needs one more, and the next hour again."""
    rising = demand([9] * 4 + [11] * 8 + [14] * ALL_DAY)
    options = PLAIN.replace(moves_per_job=4)
    assert levels([training(moved=NOON - 7200, moves=0)], rising, options=options) == [3]
    assert levels([training(moved=NOON - 7200, moves=3)], rising, options=options) == [1]


some_trainings = st.lists(
    st.builds(
        lambda gpus, replicas, least, more, lead, number: training(
            f"a/Job/{number}",
            gpus=float(gpus),
            replicas=replicas,
            least=least,
            most=least + more,
            lead=float(lead),
        ),
        st.sampled_from([1, 2, 8]),
        st.integers(0, 6),
        st.integers(0, 3),
        st.integers(0, 6),
        st.sampled_from([60, 600, 3000]),
        st.integers(0, 10**6),
    ),
    max_size=5,
    unique_by=lambda one: one.key,
)


@settings(max_examples=60, deadline=None)
@given(some_trainings, st.lists(st.integers(0, 30), min_size=8, max_size=8), st.booleans())
def test_what_is_not_drained_in_time_always_fits(trainings: list[Training], need: list[float], forecast: bool) -> None:
    """For every half hour: what cannot be gone by then, and the minimum of the others, fit beside inference."""
    ahead = demand(need, capacity=24, forecast=forecast)
    after = levels(trainings, ahead)
    shrunk = any(level < one.replicas for level, one in zip(after, trainings, strict=True))
    for slot in range(8):
        begins = slot * SLOT
        held = 0.0
        for level, one in zip(after, trainings, strict=True):
            is_there = one.lead >= begins
            held += one.gpus * (level if is_there else min(level, one.least))
        if any(one.lead >= begins for one in trainings):
            assert held <= max(0.0, 24 - need[slot]) + 1e-6 or (not shrunk and held == 0)
    if not forecast or shrunk:
        assert all(level <= one.replicas for level, one in zip(after, trainings, strict=True))
    assert all(level <= max(one.most, one.replicas) for level, one in zip(after, trainings, strict=True))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 16), min_size=48, max_size=48), st.integers(1, 3))
def test_moves_settle(need: list[float], n: int) -> None:
    """While demand stays as it is nobody is moved back and forth."""
    trainings = [training(f"a/Job/{k}", replicas=k) for k in range(n)]
    ahead = demand(need)
    for _ in range(4):
        made = moves(trainings, ahead)
        trainings = [after_move(made[one.key]) if one.key in made else one for one in trainings]
    assert not moves(trainings, ahead)


STARTS = NOON + SLOT * np.arange(9, dtype=np.float64)
CAPACITY = np.array([100.0])


def use(key: str, held: float, expected: Sequence[float] | None, waiting: float = 0.0) -> ServiceUse:
    one = np.ones(1)
    curve = None if expected is None else np.array(expected, dtype=np.float64)
    return ServiceUse(key, held * one, waiting * one, one, curve)


def need(*uses: ServiceUse, options: TideOptions = PLAIN, now: float = NOON) -> list[float]:
    found: list[float] = demand_ahead(uses, CAPACITY, STARTS, now, options).need[0].tolist()
    return found


def test_what_rises_is_expected_half_an_hour_early_and_what_falls_half_an_hour_late() -> None:
    assert need(use("a", 4, [4, 4, 8, 8, 4, 4, 4, 4])) == [4, 8, 8, 8, 8, 4, 4, 4]


def test_errors_of_services_add_as_squares_and_the_common_one_linearly() -> None:
    flat = [16.0] * 8
    both = [use("a", 16, flat), use("b", 16, flat)]
    assert need(*both, options=TideOptions(margin=0.25, spread=0.0))[3] == 40
    assert need(*both, options=TideOptions(margin=0.0, spread=0.25))[3] == np.ceil(32 + 4 * np.sqrt(2))
    assert need(*both, options=TideOptions(margin=0.0, spread=0.0, reserve_gpus=3))[3] == 35


def test_half_hours_that_a_stretch_touches() -> None:
    ahead = demand_ahead([], CAPACITY, STARTS, NOON, PLAIN)
    assert np.flatnonzero(ahead.slots(NOON, NOON)).tolist() == [0]
    assert np.flatnonzero(ahead.slots(NOON + 1, NOON + SLOT)).tolist() == [0, 1]
    assert np.flatnonzero(ahead.slots(NOON + 20 * SLOT, NOON + 30 * SLOT)).tolist() == [7]
    assert np.flatnonzero(ahead.slots(NOON - 9 * SLOT, NOON - 8 * SLOT)).tolist() == [0]


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=4),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
)
def test_need_is_never_less_than_expected_nor_than_what_is_held_and_waited_for(
    services: list[tuple[int, int, int]], margin: float, spread: float
) -> None:
    uses = [use(str(n), held, [float(level)] * 8, waiting) for n, (held, level, waiting) in enumerate(services)]
    ahead = demand_ahead(uses, CAPACITY, STARTS, NOON, TideOptions(margin=margin, spread=spread))
    assert (ahead.need >= ahead.expected - 1e-6).all()
    assert ahead.need[0, 0] >= sum(held + waiting for held, _, waiting in services)
    assert ahead.expected[0] == pytest.approx(ahead.by_service.sum(axis=0)[0])


def stretches(leads: Sequence[float], rooms: Sequence[float]) -> Stretches:
    """rooms: of the stretches in order."""
    at = iter(rooms)
    return Stretches(np.array(leads), lambda begin, end: next(at))


def one_by_one(floors: list[int], ceilings: list[int], leasts: list[int], gpus: Floats, within: Stretches) -> list[int]:
    """The plain way: whoever has least above its minimum gets one more, if it fits."""
    levels, active = list(floors), [j for j in range(len(floors)) if floors[j] < ceilings[j]]

    def used() -> Floats:
        now = np.array(levels)
        return within.used(now * gpus, np.minimum(now, leasts) * gpus)

    while active:
        j = min(active, key=lambda j: ((levels[j] - leasts[j]) * gpus[j], j))
        before = used()
        levels[j] += 1
        after = used()
        grows = after > before
        if (after[grows] > within.room[grows] + 1e-6).any():
            levels[j] -= 1
            active.remove(j)
        elif levels[j] == ceilings[j]:
            active.remove(j)
    return levels


some = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 30), st.sampled_from([1, 2, 8]), st.integers(0, 2)),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=100)
@given(some, st.lists(st.integers(0, 200), min_size=3, max_size=3))
def test_many_at_once_are_the_same_as_one_by_one(trainings: list[tuple[int, ...]], rooms: list[int]) -> None:
    least = [one[0] for one in trainings]
    floors = [min(one[0], one[1]) for one in trainings]
    ceilings = [floor + one[2] for floor, one in zip(floors, trainings, strict=True)]
    gpus = np.array([one[3] for one in trainings], dtype=np.float64)
    leads = np.array([float(one[4]) for one in trainings])
    within = stretches(leads.tolist(), rooms)
    assert filled(floors, ceilings, least, gpus, within) == one_by_one(floors, ceilings, least, gpus, within)
