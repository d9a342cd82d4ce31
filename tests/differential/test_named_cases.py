"""Single cases in which versions of kube-scheduler differ, or one does not do what its documentation says."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from testing.servers.cluster_objects import Manifest, node, pod
from tests.differential.comparing import Compared, compare
from tests.differential.our_filters import VERSION
from tests.differential.real_scheduler import RealScheduler
from tests.placement.random_cluster import RandomCluster

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(scope="module")
def real() -> Iterator[RealScheduler]:
    with RealScheduler() as running:
        yield running


def in_shop(constraint: str, operator: str) -> Manifest:
    """A probe that minds cart pods of namespaces chosen by whether their stage is prod."""
    selector: dict[str, Any] = {"key": "stage", "operator": operator}
    if operator in ("In", "NotIn"):
        selector["values"] = ["prod"]
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "cart"}},
        "namespaceSelector": {"matchExpressions": [selector]},
    }
    probe = pod(f"probe-{constraint}-{operator}".lower(), namespace="shop", labels={"app": "web"})
    probe["spec"] |= {"affinity": {constraint: {REQUIRED: [term]}}, "priorityClassName": "never-preempts"}
    return probe


@pytest.fixture(scope="module")
def by_namespace(real: RealScheduler) -> dict[str, Compared]:
    """A cart pod of a prod namespace is on `taken`, none on `free`."""
    cluster = RandomCluster(
        namespaces={"default": {"stage": "prod"}, "shop": {"stage": "test"}, "batch": {}, "bare": {}},
        nodes=(node("taken"), node("free")),
        others=(),
        sitting=(pod("cart", node="taken", labels={"app": "cart"}),),
        terminating=frozenset(),
        probes=tuple(
            in_shop(constraint, operator)
            for constraint in ("podAffinity", "podAntiAffinity")
            for operator in ("In", "NotIn", "Exists", "DoesNotExist")
        ),
    )
    return {one.probe: one for one in compare(real.observe(cluster), [], Random(0))}


@pytest.mark.parametrize("operator", ["in", "notin", "exists", "doesnotexist"])
def test_a_namespace_selector_is_read_as_the_version_reads_it(by_namespace: dict[str, Compared], operator: str) -> None:
    """https://github.com/kubernetes/kubernetes/issues/141526: until 1.36, NotIn and DoesNotExist mean all."""
    together, apart = by_namespace[f"probe-podaffinity-{operator}"], by_namespace[f"probe-podantiaffinity-{operator}"]
    is_meant = operator in ("in", "exists") or not VERSION.keeps_namespace_selectors
    assert together.real.passing == ({"taken"} if is_meant else set()) == together.ours.passing
    assert apart.real.passing == ({"free"} if is_meant else {"free", "taken"}) == apart.ours.passing
