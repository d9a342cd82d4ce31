"""ElasticQuota objects as a tree: what is read, whose pods count where, and what is said of what cannot be right."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenants.elastic_quota import (
    MOST_RESOURCES_OF_ONE,
    NAMESPACES_ANNOTATION,
    PARENT_LABEL,
    QUOTA_LABEL,
    WATCHED_QUOTAS,
    WEIGHT_ANNOTATION,
    ElasticQuota,
)
from tenants.quota_tree import BOUNDLESS, MOST_LEVELS, MOST_RESOURCES, NO_QUOTA, QuotaTree, quota_tree
from tests.tenants.tenant_world import quota, tenant_pod


def decoded(name: str, namespace: str, *, labels: Any = None, annotations: Any = None, **spec: Any) -> ElasticQuota:
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    return WATCHED_QUOTAS.decoded(msgspec.json.encode({"metadata": metadata, "spec": spec or None}))[0]


def row(tree: QuotaTree, key: str) -> int:
    return [one.key for one in tree.quotas].index(key)


def test_an_object_is_read_in_base_units() -> None:
    found = decoded(
        "q",
        "a",
        labels={
            PARENT_LABEL: "p",
            "quota.scheduling.koordinator.sh/allow-lent-resource": "false",
        },
        annotations={WEIGHT_ANNOTATION: "2.5", NAMESPACES_ANNOTATION: '["x", "y"]'},
        min={"cpu": "1500m", "memory": "1Gi"},
        max={"cpu": 4},
    )
    assert found == ElasticQuota(
        "a", "q", "p", {"cpu": 1.5, "memory": 2.0**30}, {"cpu": 4.0}, lends=False, weight=2.5, namespaces=("x", "y")
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"min": {"cpu": "many"}}, "spec.min.cpu"),
        ({"max": {"cpu": "-1"}}, "must be 0 or more"),
        ({"annotations": {WEIGHT_ANNOTATION: "0"}}, "a number above 0"),
        ({"annotations": {NAMESPACES_ANNOTATION: "x"}}, "write a list"),
    ],
)
def test_what_cannot_be_read_counts_as_not_said(given: dict[str, Any], problem: str) -> None:
    found = decoded("q", "a", **given)
    assert problem in found.problem
    assert not found.guaranteed and not found.most and found.weight == 1 and not found.namespaces
    assert any(problem in one for one in quota_tree([found]).problems)


def test_max_counts_where_min_is_more_and_the_root_of_koordinator_is_no_parent() -> None:
    tree = quota_tree([quota("a", 4, 2)])
    assert tree.guaranteed[0, 0] == 2000 and "more min than max" in tree.problems[0]
    assert decoded("q", "a", labels={PARENT_LABEL: "koordinator-root-quota"}).parent == ""


def test_parents_come_before_their_children_and_guarantee_what_these_are_guaranteed() -> None:
    tree = quota_tree([quota("x", 3, parent="z"), quota("y", 2, parent="z"), quota("z", 4), quota("a", 1, 2)])
    assert tree.depth.tolist() == [0, 0, 1, 1] and [one.name for one in tree.quotas] == ["a", "z", "x", "y"]
    assert tree.path(row(tree, "x/x")) == (row(tree, "x/x"), row(tree, "z/z"))
    assert tree.guaranteed[:, 0].tolist() == [1000, 5000, 3000, 2000]
    assert tree.most[:, 0].tolist() == [2000, BOUNDLESS, BOUNDLESS, BOUNDLESS]
    assert tree.is_leaf.tolist() == [True, False, True, True]
    assert "less min of cpu than its children together" in tree.problems[0]


def test_a_cycle_and_a_missing_parent_stand_at_the_top() -> None:
    tree = quota_tree([quota("x", 1, parent="y"), quota("y", 1, parent="x"), quota("z", 1, parent="gone")])
    assert (tree.parent == NO_QUOTA).sum() == 2, "the cycle is cut once"
    assert any("its own ancestor" in one for one in tree.problems)
    assert any("there is no such quota" in one for one in tree.problems)


def test_quotas_that_name_thousands_of_resources_push_out_none_that_others_name() -> None:
    """They made 40,000 columns, and one change took seconds under the lock of the tables."""
    many = {f"example.com/a{n}": "1" for n in range(60)}
    one = decoded("q", "a", min={**many, "cpu": "2"}, max=many)
    assert len(one.guaranteed) == MOST_RESOURCES_OF_ONE and one.guaranteed["cpu"] == 2
    assert "names 61 resources" in one.problem and "names 60 resources" in one.problem
    hostile = [
        ElasticQuota("h", f"h{at}", guaranteed={f"example.com/h{at}-{n}": 1 for n in range(40)}) for at in range(50)
    ]
    said = {"cpu": 4.0, "memory": 2.0**30, "rdma/hca": 1.0}
    honest = [ElasticQuota(namespace, namespace, guaranteed=said) for namespace in "bc"]
    tree = quota_tree([*hostile, one, *honest])
    assert tree.guaranteed.shape == (53, MOST_RESOURCES) and {"cpu", "memory", "rdma/hca"} <= set(tree.resources)
    assert tree.guaranteed[row(tree, "b/b"), tree.resources.index("rdma/hca")] == 1
    assert any("have no min and no bound" in problem for problem in tree.problems)


def test_a_chain_of_thousands_of_quotas_is_cut_and_does_not_take_the_square_of_its_length() -> None:
    chain = [ElasticQuota("h", f"q{at}", f"q{at + 1}") for at in range(20_000)]
    tree = quota_tree([*chain, quota("a", 1)])
    assert tree.depth.max() == MOST_LEVELS - 1
    assert any("it stands at the top" in problem for problem in tree.problems)


def test_a_parent_is_looked_up_near_its_child_first() -> None:
    near, far = ElasticQuota("a", "top"), ElasticQuota("b", "top")
    child, other = ElasticQuota("a", "q", "top"), ElasticQuota("c", "q", "top")
    tree = quota_tree([near, far, child, other])
    assert tree.parent[row(tree, "a/q")] == row(tree, "a/top")
    assert tree.parent[row(tree, "c/q")] == NO_QUOTA
    assert any("several of that name" in one for one in tree.problems)


def test_pods_count_where_their_namespace_says_and_their_label_among_these() -> None:
    first, second = ElasticQuota("a", "first"), ElasticQuota("a", "second")
    shared = ElasticQuota("b", "shared", namespaces=("c",))
    tree = quota_tree([first, second, shared])
    assert tree.row_of(tenant_pod("p", "a")) == row(tree, "a/first")
    assert tree.row_of(tenant_pod("p", "a", labels={QUOTA_LABEL: "second"})) == row(tree, "a/second")
    assert tree.row_of(tenant_pod("p", "a", labels={QUOTA_LABEL: "shared"})) == row(tree, "a/first"), "not open to it"
    assert tree.row_of(tenant_pod("p", "c")) == row(tree, "b/shared")
    assert tree.row_of(tenant_pod("p", "d")) == NO_QUOTA
    assert tree.name(row(tree, "a/second")) == "a/second" and tree.name(row(tree, "b/shared")) == "b"


def test_a_quota_that_takes_the_place_of_another_is_named() -> None:
    taking, own = ElasticQuota("b", "taking", namespaces=("a",)), ElasticQuota("a", "own")
    tree = quota_tree([taking, own])
    assert tree.row_of(tenant_pod("p", "a")) == row(tree, "b/taking")
    assert any("counts in place of its own (a/own)" in one for one in tree.problems)
