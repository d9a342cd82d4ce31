"""Needs by half hour against plain loops."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import Floats
from tenants.elastic_quota import ElasticQuota
from tenants.need import ServicePods, most_within, needed, pods_of_lasting, still_running
from tenants.quota_tree import QuotaTree, quota_tree

RESOURCES = ("cpu", "memory")


@st.composite
def trees(draw: st.DrawFn) -> QuotaTree:
    n = draw(st.integers(1, 6))
    quotas = []
    for number in range(n):
        above = draw(st.integers(-1, number - 1))
        least = {name: float(draw(st.integers(0, 5))) for name in RESOURCES}
        quotas.append(ElasticQuota("t", f"q{number}", parent=f"q{above}" if above >= 0 else "", guaranteed=least))
    return quota_tree(quotas)


@st.composite
def services(draw: st.DrawFn) -> tuple[QuotaTree, ServicePods]:
    tree = draw(trees())
    n, n_steps = draw(st.integers(0, 8)), draw(st.integers(1, 6))
    numbers = st.floats(0, 20, allow_nan=False)
    return tree, ServicePods(
        row=np.array([draw(st.integers(0, len(tree.quotas) - 1)) for _ in range(n)], dtype=np.int64),
        units=np.array(
            [[draw(st.integers(0, 4000)) for _ in tree.resources] for _ in range(n)], dtype=np.int64
        ).reshape(n, len(tree.resources)),
        pods=np.array([[draw(numbers) for _ in range(n_steps)] for _ in range(n)]).reshape(n, n_steps),
        held=np.zeros((n, n_steps)),
    )


def below(tree: QuotaTree, row: int) -> list[int]:
    return [other for other in range(len(tree.quotas)) if row in tree.path(other)]


@given(services())
def test_needs_are_the_sums_of_a_plain_loop(given_: tuple[QuotaTree, ServicePods]) -> None:
    tree, of = given_
    found = needed(tree, of)
    own = np.zeros_like(found)
    for step in range(of.pods.shape[1]):
        for row in range(len(tree.quotas)):
            for at in range(len(tree.resources)):
                exact = sum(float(of.pods[one, step]) * int(of.units[one, at]) for one in np.flatnonzero(of.row == row))
                own[step, row, at] = math.ceil(exact - 1e-6)
    for row in range(len(tree.quotas)):
        np.testing.assert_allclose(found[:, row], own[:, below(tree, row)].sum(axis=1), atol=1)


@given(services())
def test_the_highest_of_a_window_is_that_of_a_plain_loop_and_one_object_while_it_stays(
    given_: tuple[QuotaTree, ServicePods],
) -> None:
    need = needed(*given_)
    found = most_within(need)
    assert len(found) == len(need)
    for n in range(len(need)):
        np.testing.assert_array_equal(found[n], need[: n + 1].max(axis=0))
        if n and np.array_equal(found[n], found[n - 1]):
            assert found[n] is found[n - 1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=20))
def test_pods_run_through_the_step_in_which_they_end(pods: list[tuple[int, int]]) -> None:
    found = still_running(
        np.array([service for service, _ in pods], dtype=np.int64),
        np.array([last for _, last in pods], dtype=np.int64),
        4,
        6,
    )
    for service in range(4):
        for step in range(6):
            assert found[service, step] == sum(one == service and last >= step for one, last in pods if last < 6) + sum(
                one == service for one, last in pods if last >= 6
            )


def lasting(now: int, expected: list[float], *, follows: bool) -> list[float]:
    curve: Floats = np.array([expected])
    found = pods_of_lasting(np.array([now], dtype=np.int64), curve, np.array([follows]), half_life=1.0)
    return [float(one) for one in found[0]]


def test_pods_beyond_the_forecast_fade_and_pods_that_are_missing_do_not_lower_it() -> None:
    assert lasting(6, [2, 2, 2], follows=True) == [6, 4, 3]
    assert lasting(1, [2, 9.5], follows=True) == [2, 9.5]
    assert lasting(1, [2, 9.5], follows=False) == [1, 1]
