from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.constraints import LabelSelector, Operator, Requirement
from kube.objects.labels import selector_matches
from placement.index import group_labels
from placement.index.group_labels import GroupLabels
from tests.placement.small_cluster import chosen, is_in

NAMESPACES = ("default", "shop")
VALUES = st.sampled_from(("a", "a", "b", ""))
labels = st.dictionaries(st.sampled_from(("app", "app", "tier")), VALUES, max_size=2)
requirements = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from(("app", "tier", "nobody-has-it")),
        st.sampled_from((Operator.IN, Operator.NOT_IN)),
        st.lists(VALUES, min_size=1, max_size=2, unique=True).map(tuple),
    ),
    st.builds(
        Requirement, st.sampled_from(("app", "tier")), st.sampled_from((Operator.EXISTS, Operator.DOES_NOT_EXIST))
    ),
    st.builds(Requirement, st.just("app"), st.sampled_from((Operator.GT, Operator.LT)), st.just(("1",))),
)
maybe_selectors = st.one_of(st.none(), st.builds(LabelSelector, st.lists(requirements, max_size=2).map(tuple)))
groups = st.lists(st.one_of(st.none(), st.tuples(st.sampled_from(NAMESPACES), labels)), max_size=12)


def put_all(table: GroupLabels, found: list[tuple[str, dict[str, str]] | None]) -> None:
    for number, group in enumerate(found):
        table.put(number, *(group or ("default", {"app": "a"})))
    for number, group in enumerate(found):
        if group is None:
            table.drop(number)


@pytest.mark.parametrize("few", [0, 64], ids=["columns", "one by one"])
@settings(max_examples=100, deadline=None)
@given(found=groups, selector=maybe_selectors, where=st.sets(st.sampled_from((*NAMESPACES, "unknown"))))
def test_chooses_what_the_selector_chooses_one_by_one(
    few: int, found: list[tuple[str, dict[str, str]] | None], selector: LabelSelector | None, where: set[str]
) -> None:
    table = GroupLabels()
    put_all(table, found)
    expected = [
        number
        for number, group in enumerate(found)
        if group is not None and group[0] in where and selector_matches(selector, group[1])
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_labels, "_FEW", few)
        assert table.matching(selector, table.in_namespaces(where)).tolist() == expected
        accepted = table.in_accepted_namespaces(lambda name: name in where)
        assert table.matching(selector, accepted).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(before=groups, after=groups, selector=maybe_selectors)
def test_no_trace_is_left_of_earlier_groups(
    before: list[tuple[str, dict[str, str]] | None],
    after: list[tuple[str, dict[str, str]] | None],
    selector: LabelSelector | None,
) -> None:
    table, fresh = GroupLabels(), GroupLabels()
    put_all(table, before)
    table.matching(selector, table.in_namespaces(NAMESPACES))  # makes the columns
    for number, group in enumerate(before):
        if group is not None:
            table.drop(number)
    put_all(table, after)
    put_all(fresh, after)
    expected = fresh.matching(selector, fresh.in_namespaces(NAMESPACES))
    assert table.matching(selector, table.in_namespaces(NAMESPACES)).tolist() == expected.tolist()


def test_values_of_pods_that_went_are_forgotten() -> None:
    table = GroupLabels()
    table.put(0, "default", {"pod": "0"})
    everything = chosen(Requirement("pod", Operator.EXISTS))
    by_name = chosen(is_in("pod", "3999"))
    for i in range(1, 4000):
        table.matching(everything, table.in_namespaces([f"of-{i - 1}", "default"]))
        table.drop(0)
        table.put(0, f"of-{i}", {"pod": str(i)})
        assert len(table.in_namespaces([])) < 1100
    assert table.matching(by_name, table.in_namespaces(["of-3999"])).tolist() == [0]


def test_keys_that_no_group_has_make_no_columns() -> None:
    table = GroupLabels()
    table.put(0, "default", {"app": "web"})
    where = table.in_namespaces(["default"])
    for i in range(1000):
        assert not len(table.matching(chosen(is_in(f"key-{i}", "x")), where))
    assert not table._columns


def test_only_so_many_columns_are_kept() -> None:
    table = GroupLabels()
    keys = [f"key-{i}" for i in range(200)]
    table.put(0, "default", dict.fromkeys(keys, "x"))
    where = table.in_namespaces(["default"])
    for key in keys:
        assert table.matching(chosen(is_in(key, "x")), where).tolist() == [0]
    assert len(table._columns) == 64
    assert np.array_equal(table.matching(chosen(is_in(keys[0], "x")), where), [0])
