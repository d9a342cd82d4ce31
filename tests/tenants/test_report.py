"""What tenants have from each other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import Ints
from tenants.elastic_quota import ElasticQuota
from tenants.need import with_parents
from tenants.quota_admission import Use, denial
from tenants.quota_tree import NO_QUOTA, QuotaTree, quota_tree
from tenants.tenant_report import ResourceReport, TenantReport, balance, tenants_report


def cores(*amounts: float) -> Ints:
    return np.array([[round(1000 * one)] for one in amounts], dtype=np.int64)


def use_of(tree: QuotaTree, direct: Ints, waiting: Ints | None = None, pool: float | None = None) -> Use:
    nothing = np.zeros_like(direct)
    total = None if pool is None else np.array([round(1000 * pool)], dtype=np.int64)
    return Use(direct, with_parents(tree, direct), nothing if waiting is None else waiting, pool=total)


def a_quota(
    name: str, least: float = 0, most: float | None = None, parent: str = "", *, lends: bool = True
) -> ElasticQuota:
    bound = {} if most is None else {"cpu": most}
    return ElasticQuota(name, name, parent, {"cpu": least}, bound, lends=lends)


def reported(tree: QuotaTree, use: Use, need: Ints | None = None) -> dict[str, ResourceReport]:
    nothing = np.zeros(len(tree.quotas), dtype=np.int64)
    found = tenants_report(tree, use, made=1e9, running=nothing, waiting=nothing, need=need, start=1e9)
    return {one.name: one.resources[0] for one in found.tenants}


def test_what_one_borrows_the_others_lend_in_proportion_to_what_they_have_idle() -> None:
    tree = quota_tree([a_quota("a", 6), a_quota("b", 4), a_quota("c", 0)])
    found = reported(tree, use_of(tree, cores(2, 2, 3)))
    assert [found[name].borrowed for name in "abc"] == [0, 0, 3]
    assert [found[name].lent for name in "abc"] == [2, 1, 0]
    assert [found[name].owed for name in "abc"] == [1, 0, 0], "3 cores are free"
    assert [found[name].may_borrow for name in "abc"] == [0, 1, 3], "beyond what each has idle itself"
    two = quota_tree([a_quota("a", 6), a_quota("c", 0)])
    found = reported(two, use_of(two, cores(0, 5), pool=10))
    assert (found["a"].lent, found["a"].owed, found["c"].borrowed) == (1, 1, 5), "what nobody is guaranteed goes first"


def test_a_parent_lends_what_its_children_have_idle() -> None:
    tree = quota_tree([a_quota("p", 6), a_quota("a", 4, parent="p"), a_quota("b", 2, parent="p"), a_quota("x", 1)])
    direct = {"p": 0.0, "a": 0.0, "b": 2.0, "x": 4.0}
    waiting = cores(*(3 * (one.name == "a") for one in tree.quotas))
    found = reported(tree, use_of(tree, cores(*(direct[one.name] for one in tree.quotas)), waiting))
    assert found["p"].waiting == found["a"].waiting == 3
    assert (found["p"].lent, found["a"].lent, found["b"].lent) == (3, 3, 0)
    assert found["x"].borrowed == 3


def test_hours_hold_the_higher_half_hour_and_what_is_lent_by_then() -> None:
    tree = quota_tree([a_quota("a", 6), a_quota("b", 4, lends=False)])
    need = np.array([[[1000], [0]], [[5000], [0]], [[7000], [1000]], [[0], [0]]], dtype=np.int64)
    found = reported(tree, use_of(tree, cores(0, 0)), need)
    assert [*found["a"].expected, *found["a"].will_lend] == [5, 7, 1, 0]
    assert [*found["b"].expected, *found["b"].will_lend] == [0, 1, 0, 0]


def test_the_report_names_parents_pods_and_problems() -> None:
    tree = quota_tree([a_quota("p"), a_quota("a", 4, 2, parent="p"), a_quota("lost", parent="nowhere")])
    running, waiting = np.array([0, 3, 0][: len(tree.quotas)]), np.array([0, 1, 0])
    found = tenants_report(tree, use_of(tree, cores(0, 0, 0)), made=5.0, running=running, waiting=waiting)
    by_name: dict[str, TenantReport] = {one.name: one for one in found.tenants}
    assert by_name["a"].parent == "p" and by_name["p"].parent == "" and by_name["a"].resources[0].most == 2
    assert by_name["p"].resources[0].most is None and by_name["p"].resources[0].expected == ()
    assert len(found.problems) == 3 and found.made == 5.0 and found.from_hour is None


@st.composite
def uses(draw: st.DrawFn) -> tuple[QuotaTree, Use]:
    n = draw(st.integers(1, 6))
    quotas = []
    for number in range(n):
        above = draw(st.integers(-1, number - 1))
        least = float(draw(st.integers(0, 5)))
        most = draw(st.one_of(st.none(), st.integers(0, 12)))
        parent = f"q{above}" if above >= 0 else ""
        lends = draw(st.booleans())
        quotas.append(a_quota(f"q{number}", least, None if most is None else float(most), parent, lends=lends))
    tree = quota_tree(quotas)
    amounts = st.lists(st.integers(0, 6), min_size=n, max_size=n)
    direct, waiting = (cores(*map(float, draw(amounts))) for _ in range(2))
    use = use_of(tree, direct, waiting, draw(st.one_of(st.none(), st.floats(0, 40))))
    expected = with_parents(tree, cores(*map(float, draw(amounts)))) if draw(st.booleans()) else None
    return tree, Use(use.direct, use.used, use.waiting, expected, use.pool)


@given(uses())
def test_what_may_be_borrowed_is_admitted_and_more_is_not(given_: tuple[QuotaTree, Use]) -> None:
    tree, use = given_
    found = balance(tree, use).may_borrow
    for row in range(len(tree.quotas)):
        own = max(0, int(tree.guaranteed[row, 0] - use.used[row, 0]))
        largest = own + int(found[row, 0])
        assert denial(tree, use, row, [largest + 1]) is not None
        if found[row, 0]:
            assert denial(tree, use, row, [largest]) is None


@given(uses())
def test_nothing_is_lent_that_is_not_idle_and_all_that_is_lent_is_borrowed(given_: tuple[QuotaTree, Use]) -> None:
    tree, use = given_
    found = balance(tree, use)
    idle = np.maximum(tree.guaranteed - use.used, 0)
    assert (found.lent >= 0).all() and (found.lent <= idle).all()
    assert (found.owed >= 0).all() and (found.owed <= idle).all()
    top = tree.parent == NO_QUOTA
    borrowed = int(found.borrowed[top].sum())
    assert int(found.lent[top].sum()) <= borrowed
    if use.pool is None:
        assert int(found.lent[top].sum()) == min(borrowed, int(idle[top].sum()))
