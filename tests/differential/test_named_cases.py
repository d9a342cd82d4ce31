"""Single cases in which kube-scheduler 1.36 does not do what its documentation says, so that we notice when it does."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.differential.comparing import Compared, compare
from tests.differential.real_scheduler import RealScheduler
from tests.extender.random_cluster import RandomCluster
from tests.servers.cluster_objects import Manifest, node, pod

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
def test_a_namespace_selector_that_fits_no_labels_means_every_namespace(
    by_namespace: dict[str, Compared], operator: str
) -> None:
    """https://github.com/kubernetes/kubernetes/issues/141526. NotIn and DoesNotExist should leave `default` out."""
    together, apart = by_namespace[f"probe-podaffinity-{operator}"], by_namespace[f"probe-podantiaffinity-{operator}"]
    assert together.real.passing == {"taken"} == together.ours.passing
    assert apart.real.passing == {"free"} == apart.ours.passing
