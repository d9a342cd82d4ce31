"""The plan: on time always, in the valley where that pays, and never all in one minute."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from cluster.predicted.power_growth import power_growth
from forecast.resources import CPU, RESOURCES
from profiles.job.valley.start_plan import ExpectedLoad, PlannedStart, WaitingJob, _Group, _Table, plan_starts

NOW = 1_779_130_000.0
STEP = 300.0
CORES = 100.0


def load_of(cpu: list[float] | Floats, *, first: float = NOW) -> ExpectedLoad:
    """Of CPU; of the others nothing is known."""
    share = np.zeros((len(RESOURCES), len(cpu)))
    share[CPU] = cpu
    capacity = np.zeros(len(RESOURCES))
    capacity[CPU] = CORES
    return ExpectedLoad(first, STEP, share, capacity)


def job(
    uid: str = "one",
    *,
    cores: float = 1.0,
    minutes: float = 10.0,
    wait_hours: float = math.inf,
    planned: float | None = None,
) -> WaitingJob:
    use = np.zeros(len(RESOURCES))
    use[CPU] = cores
    return WaitingJob(uid, use, 60 * minutes, NOW + 3600 * wait_hours, planned)


def valley(low: int = 40, width: int = 6, n: int = 144) -> Floats:
    """70 %, but 20 % at some points."""
    cpu = np.full(n, 0.7)
    cpu[low : low + width] = 0.2
    return cpu


def starts(planned: list[PlannedStart]) -> list[float]:
    return [one.start for one in planned]


def test_a_job_that_does_not_say_starts_now() -> None:
    (planned,) = plan_starts([job()], load_of(valley()), NOW)
    assert planned.start == NOW
    assert "does not say" in planned.why


def with_error(cpu: Floats, error: float) -> ExpectedLoad:
    """Load of CPU whose forecast errs by a share of it."""
    load = load_of(cpu)
    return replace(load, error=error * load.share)


def noisy_plateau(noise: float) -> Floats:
    """70 % for two hours, then a day of 20 % with noise, lowest at its end."""
    cpu = np.concatenate([np.full(24, 0.7), 0.2 * (1 + noise * np.random.default_rng(3).uniform(0, 1, 260))])
    cpu[255:270] = 0.2 * (1 - noise)
    return cpu


def test_a_clear_gain_is_waited_for() -> None:
    cpu = noisy_plateau(0.02)
    cpu[200:220] = 0.1
    (planned,) = plan_starts([job(minutes=30, wait_hours=23)], with_error(cpu, 0.02), NOW)
    assert 200 <= (planned.start - NOW) / STEP <= 214


def test_the_words_name_the_better_start_that_is_within_the_error() -> None:
    first = 1_779_130_000.0 // 86_400 * 86_400
    cpu = np.full(144, 0.30)
    cpu[60:66] = 0.28
    load = replace(with_error(cpu, 0.1), first=first)
    one = WaitingJob("one", job().use, 600.0, first + 9 * 3600)
    (planned,) = plan_starts([one], load, first, zone=UTC)
    assert planned.start == first
    assert planned.why == (
        "starts now: cluster CPU is predicted at 30 %, and waiting gains little; "
        "28 % at 05:00 differs by less than the forecast may err; may start until 09:00"
    )


@settings(max_examples=40, deadline=None)
@given(
    cpu=st.lists(st.floats(0.1, 0.9), min_size=12, max_size=30),
    length=st.integers(1, 5),
    start=st.integers(0, 6),
    seed=st.integers(0, 100),
)
def test_the_error_of_a_difference_is_what_drawn_errors_give(
    cpu: list[float], length: int, start: int, seed: int
) -> None:
    """Errors that are one number per run: the same in all of its points, another in the other run's own points."""
    share, v, error = np.array(cpu), 0.01, 0.02 * np.array(cpu)
    load = replace(load_of(share), error=np.where(np.arange(len(RESOURCES))[:, None] == CPU, error, 0.0))
    table = _Table(load, NOW, length * STEP)
    last = len(cpu) - length
    use = np.zeros(len(RESOURCES))
    use[CPU] = v
    group = _Group(np.array([0]), use, np.zeros(2), 1, length, last, 0, False)
    start = min(start, last)
    other = (seed * 7) % (last + 1)
    found = table.difference_error(group, other)[start]
    runs = [set(range(at, at + length)) for at in (start, other)]
    alone = [sorted(runs[0] - runs[1]), sorted(runs[1] - runs[0])]

    def cost(x: Floats, points: list[int]) -> float:
        return float(sum((x[at] + v) ** 4 - x[at] ** 4 for at in points))

    drawn = np.random.default_rng(seed).normal(size=(4000, 2))
    differences = [
        cost(share + 1e-3 * one * error, alone[0]) - cost(share + 1e-3 * two * error, alone[1]) for one, two in drawn
    ]
    assert found == pytest.approx(float(np.std(differences)) / 1e-3, rel=0.08, abs=1e-12)


def test_a_plan_is_kept_unless_another_gains() -> None:
    load = load_of(valley())
    kept = job(wait_hours=8, planned=NOW + 42 * STEP + 7)
    assert starts(plan_starts([kept], load, NOW)) == [kept.planned]
    elsewhere = replace(kept, planned=NOW + 20 * STEP)
    assert starts(plan_starts([elsewhere], load, NOW)) == [NOW + 40 * STEP]


@settings(max_examples=60, deadline=None)
@given(
    cpu=st.lists(st.floats(0, 1.5), min_size=1, max_size=40),
    drawn=st.lists(
        st.tuples(st.floats(0, 200), st.floats(0, 1e6), st.floats(-1e6, 1e6), st.none() | st.floats(-1e6, 1e6)),
        max_size=12,
    ),
)
def test_every_job_has_a_start_and_none_is_late_that_need_not_be(
    cpu: list[float], drawn: list[tuple[float, float, float, float | None]]
) -> None:
    jobs = [
        WaitingJob(str(n), job(cores=cores).use, run, NOW + due, None if planned is None else NOW + planned)
        for n, (cores, run, due, planned) in enumerate(drawn)
    ]
    planned = plan_starts(jobs, load_of(cpu), NOW)
    assert [one.uid for one in planned] == [one.uid for one in jobs]
    for one, start in zip(jobs, planned, strict=True):
        assert start.why
        assert start.start <= max(NOW, one.due - 60) or start.start == one.planned
        assert start.start >= NOW or start.start == one.planned


@settings(max_examples=40, deadline=None)
@given(
    cpu=st.lists(st.floats(0.05, 1.0), min_size=20, max_size=40),
    cores=st.floats(0.1, 50),
    length=st.integers(1, 8),
)
def test_one_job_goes_where_the_cost_is_lowest(cpu: list[float], cores: float, length: int) -> None:
    last = len(cpu) - length
    due = NOW + last * STEP + 60
    one = WaitingJob("one", job(cores=cores).use, length * STEP, due)
    (planned,) = plan_starts([one], load_of(cpu), NOW, least_gain=0.0)
    costs = []
    for start in range(last + 1):
        added = np.zeros(len(cpu))
        added[start : start + length] = cores / CORES
        share = np.array(cpu)[None, None, :]
        costs.append(float(power_growth(share, added[None, None, :], np.ones(len(cpu)), np.ones((1, 1)))[0]))
    chosen = round((planned.start - NOW) / STEP)
    assert costs[chosen] <= min(costs) * (1 + 1e-6)


def test_like_jobs_in_pieces_are_nearly_as_good_as_one_by_one() -> None:
    cpu = 0.5 + 0.3 * np.cos(np.arange(144) / 144 * 2 * np.pi)
    many = [job(str(n), wait_hours=11) for n in range(400)]
    distinct = [replace(one, use=one.use * (1 + n / 1e9), due=one.due + n % 7) for n, one in enumerate(many)]

    def cost(planned: list[PlannedStart]) -> float:
        together = np.concatenate([cpu, cpu[-1:].repeat(4)])
        for one in planned:
            at = int((one.start - NOW) / STEP)
            together[at : at + 2] += 1 / CORES
        return float((together**4).sum())

    one_by_one: list[PlannedStart] = []
    load = load_of(cpu)
    for one in distinct:
        (planned,) = plan_starts([one], load, NOW)
        at = int((planned.start - NOW) / STEP)
        load.share[CPU, at : at + 2] += 1 / CORES
        one_by_one.append(planned)
    nothing = cost([])
    assert cost(plan_starts(many, load_of(cpu), NOW)) - nothing <= 1.05 * (cost(one_by_one) - nothing)
    assert all(a <= b for a, b in pairwise(sorted(starts(one_by_one))))


def with_room(cpu: Floats, cores: list[float] | Floats, n_nodes: int = 0) -> ExpectedLoad:
    load = load_of(cpu)
    return replace(load, room=np.array([cores, np.full(len(cpu), 1e12)]), n_nodes=n_nodes)


def test_jobs_that_fit_by_load_have_to_fit_by_requests_too() -> None:
    room = np.full(144, 40.0)
    room[40:46] = 4.0
    small, large = (replace(job(f"{n}", wait_hours=8), requests=(n, 1e9)) for n in (2.0, 8.0))
    planned = plan_starts([small, large], with_room(valley(low=40, width=12), room), NOW)
    assert (planned[0].start - NOW) / STEP == 40
    assert (planned[1].start - NOW) / STEP == 46


def test_what_is_planned_takes_room() -> None:
    room = np.full(144, 10.0)
    jobs = [replace(job(str(n), cores=0.01, wait_hours=8), requests=(4.0, 0.0)) for n in range(6)]
    planned = plan_starts(jobs, with_room(valley(low=40, width=4), room), NOW)
    at = [round((one.start - NOW) / STEP) for one in planned]
    running = [sum(start <= point < start + 2 for start in at) for point in range(144)]
    assert max(running) == 2  # of a valley that is as long as two runs, the last two find no room
    assert sum(start < 40 or start > 42 for start in at) == 2


def test_where_there_never_is_room_the_load_decides() -> None:
    (planned,) = plan_starts(
        [replace(job(wait_hours=8), requests=(4.0, 0.0))], with_room(valley(), np.full(144, 1.0)), NOW
    )
    assert planned.start == NOW + 40 * STEP
    assert "there is no room for its requests now" in planned.why
