from __future__ import annotations

from dataclasses import replace
from datetime import UTC

from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import TideDemand
from profiles.gpu.tide.tide_plan import MoveKind, TideMove, Training, after_move, decide
from profiles.gpu.tide.tide_report import reason
from tests.profiles.gpu.tide.tide_made_up import NOON, PLAIN, SLOT, demand, training

ALL_DAY = 48


def moves(
    trainings: list[Training], ahead: TideDemand, now: float = NOON, options: TideOptions = PLAIN
) -> dict[str, TideMove]:
    return {move.training.key: move for move in decide(trainings, ahead, now, options, UTC)[0]}


def levels(trainings: list[Training], ahead: TideDemand, now: float = NOON, options: TideOptions = PLAIN) -> list[int]:
    made = moves(trainings, ahead, now, options)
    return [made[one.key].after if one.key in made else one.replicas for one in trainings]


def test_training_shrinks_its_drain_time_before_inference_needs_the_gpus() -> None:
    """8 of 16 GPUs are needed now, 12 from 12:30 on; draining takes ten minutes."""
    ahead = demand([8] + [12] * (ALL_DAY - 1))
    one = training(replicas=4)
    assert not moves([one], ahead, NOON)
    assert not moves([one], ahead, NOON + SLOT - 601)
    move = moves([one], ahead, NOON + SLOT - 600)[one.key]
    assert (move.kind, move.before, move.after, move.gpus) == (MoveKind.SHRINK, 4, 2, 4)
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
        elastic.key: (MoveKind.SHRINK, 2),
        whole.key: (MoveKind.TAKE, 0),
    }, "6 GPUs do not fit into the 4 that are left"
    stopped = replace(whole, replicas=0, taken=True, moved=NOON - 7200, moves=1)
    resumed = moves([stopped], demand([10] * ALL_DAY))[whole.key]
    assert (resumed.kind, resumed.after) == (MoveKind.RESUME, 3)
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


def test_who_writes_a_million_moves_on_his_training_uses_up_no_others() -> None:
    """Failed before: nobody's training grew until the next day."""
    liar, honest = training("a/Job/liar", moved=NOON - 7200, moves=1_000_000), training("b/Job/b", replicas=1)
    assert levels([liar, honest], demand([4] * ALL_DAY))[1] > 1


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
