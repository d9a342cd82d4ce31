"""Beside the cases of test_upstream_pod_requests.py. Those marked upstream are of component-helpers/resource/
helpers_test.go, Kubernetes v1.36."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from base.errors import InputError
from kube.objects.kubernetes_version import COMPARED
from kube.objects.objects import QosClass
from kube.objects.pod_requests import ContainerResources, Resources, pod_totals, qos_class

MIB = 2.0**20
HUGE = "hugepages-2Mi"


def container(
    requests: dict[str, float] | None = None,
    limits: dict[str, float] | None = None,
    *,
    actual: dict[str, float] | None = None,
    actual_limits: dict[str, float] | None = None,
    allocated: dict[str, float] | None = None,
    sidecar: bool = False,
) -> ContainerResources:
    reported = actual is not None or actual_limits is not None
    return ContainerResources(
        Resources(requests or {}, limits or {}),
        Resources(actual or {}, actual_limits or {}) if reported else None,
        allocated,
        sidecar,
    )


def cpu(cores: float, **more: Any) -> ContainerResources:
    return container({"cpu": cores}, **more)


@dataclass(frozen=True)
class Case:
    name: str
    containers: Sequence[ContainerResources]
    requests: dict[str, float]
    init: Sequence[ContainerResources] = ()
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


INFEASIBLE = {"resize_infeasible": True}

DIFFERENT = [
    (Case("an ordinary init container is resized", [], {"cpu": 4}, [cpu(4, actual={"cpu": 9})]), {"cpu": 9}),
    (Case("only allocated", [cpu(4, allocated={"cpu": 9})], {"cpu": 4}), {"cpu": 9}),
    (
        Case(
            "one container grows as another shrinks", [cpu(1, actual={"cpu": 4}), cpu(4, actual={"cpu": 1})], {"cpu": 8}
        ),
        {"cpu": 5},
    ),
    (
        Case("infeasible, nothing reported", [cpu(4)], {"cpu": 4, "x": 1}, more={**INFEASIBLE, "overhead": {"x": 1}}),
        {"x": 1},
    ),
    (
        Case(
            "the kubelet reports the pod as a whole, which says nothing at pod level",
            [cpu(1, actual={"cpu": 9})],
            {"cpu": 9},
            more={"reported": container(actual={"cpu": 3}, allocated={"cpu": 2})},
        ),
        {"cpu": 3},
    ),
    (
        Case(
            "reported at pod level, not asked for there",
            [],
            {"cpu": 2},
            more={"pod_level": container({"cpu": 2}, actual={"memory": 5})},
        ),
        {"cpu": 2, "memory": 5},
    ),
]


@pytest.mark.parametrize(("case", "newer"), DIFFERENT, ids=str)
def test_requests_that_versions_count_differently(case: Case, newer: dict[str, float]) -> None:
    by_version = [pod_totals(case.containers, case.init, version=one, **case.more).requests for one in COMPARED[1:3]]
    assert by_version == [case.requests, newer]


NONZERO = [
    (Case("requested 0 stays 0", [container({"cpu": 0, "memory": 0})], {}), (0.0, 0.0)),
    (Case("sidecar adds", [container()], {}, [container(sidecar=True)]), (0.2, 400 * MIB)),
    (
        Case(
            "somebody says it below a pod level",
            [container({"memory": MIB}), container()],
            {},
            more={"pod_level": container({"cpu": 3})},
        ),
        (3.0, MIB),
    ),
]


@pytest.mark.parametrize(("case", "expected"), NONZERO, ids=str)
def test_nonzero_requests(case: Case, expected: tuple[float, float]) -> None:
    assert pod_totals(case.containers, case.init, **case.more).nonzero_requests == pytest.approx(expected, rel=1e-12)


def limited(amount: float, **more: Any) -> ContainerResources:
    return container(limits={"memory": amount}, **more)


LIMITS = [
    Case("upstream: pod scaled down", [limited(1, actual_limits={"memory": 2})], {"memory": 2}),
    Case("infeasible", [limited(9, actual_limits={"memory": 2})], {"memory": 2}, more=INFEASIBLE),
    Case("pod level wins", [limited(2)], {"memory": 7}, more={"pod_level": limited(7)}),
]


@pytest.mark.parametrize("case", LIMITS, ids=str)
def test_limits(case: Case) -> None:
    assert pod_totals(case.containers, case.init, **case.more).limits == case.requests


def both(cores: float, memory: float) -> dict[str, float]:
    return {"cpu": cores, "memory": memory}


@pytest.mark.parametrize(
    ("name", "containers", "pod_level", "expected"),
    [
        ("guaranteed", [Resources(both(1, 2), both(1, 2))], None, QosClass.GUARANTEED),
        ("guaranteed by limits alone", [Resources({}, both(1, 2))], None, QosClass.GUARANTEED),
        ("best effort", [Resources({}, {})], None, QosClass.BEST_EFFORT),
        ("no containers", [], None, QosClass.BEST_EFFORT),
        ("huge pages do not count", [Resources({}, {HUGE: 1})], None, QosClass.BEST_EFFORT),
        ("requests of 0", [Resources(both(0, 0), {})], None, QosClass.BEST_EFFORT),
        ("no limits", [Resources(both(1, 2), {})], None, QosClass.BURSTABLE),
        ("cpu limit missing", [Resources(both(1, 2), {"memory": 2})], None, QosClass.BURSTABLE),
        ("limits above requests", [Resources(both(1, 2), both(2, 2))], None, QosClass.BURSTABLE),
        ("pod level guaranteed", [Resources({"cpu": 1}, {})], Resources(both(1, 2), both(1, 2)), QosClass.GUARANTEED),
        ("pod level burstable", [Resources(both(1, 2), both(1, 2))], Resources({"cpu": 1}, {}), QosClass.BURSTABLE),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_qos_class(name: str, containers: list[Resources], pod_level: Resources | None, expected: QosClass) -> None:
    assert qos_class(containers, pod_level) is expected


def test_qos_follows_what_the_api_server_fills_in_and_nothing_is_negative() -> None:
    level = container({}, {"memory": 7})
    assert pod_totals([cpu(1)], pod_level=level).qos is QosClass.BURSTABLE
    assert pod_totals([], pod_level=container({}, both(1, 2))).qos is QosClass.GUARANTEED
    assert pod_totals([container()], [container()]).qos is QosClass.BEST_EFFORT
    assert pod_totals([container()], [cpu(1)]).qos is QosClass.BURSTABLE
    with pytest.raises(InputError, match="'cpu' is -1"):
        Resources({"cpu": -1.0}, {})


@pytest.mark.parametrize(
    ("containers", "more", "set_aside"),
    [
        ([cpu(5, actual={"cpu": 0.5}, allocated={"cpu": 0.5}), cpu(1)], {}, {"cpu": 1.5}),
        ([cpu(5, allocated={"cpu": 0.5})], {}, {"cpu": 0.5}),
        ([cpu(1, actual={"cpu": 5}, allocated={"cpu": 1})], {}, None),
        ([cpu(1)], {}, None),
        ([cpu(1)], {"pod_level": container({"cpu": 8}, actual={"cpu": 2}, allocated={"cpu": 3})}, {"cpu": 3}),
        ([cpu(5, actual={"cpu": 1})], {"overhead": {"cpu": 1}}, {"cpu": 2}),
        ([container({"cpu": 5, "gpu": 1}, actual={"cpu": 1})], {}, {"cpu": 1, "gpu": 1}),
        ([cpu(5, actual={"cpu": 1}, allocated={"cpu": 1})], {"claimed": {"cpu": 2}}, {"cpu": 3}),
        ([cpu(1)], {"claimed": {"cpu": 2}}, None),
    ],
)
def test_what_the_kubelet_has_set_aside_whatever_the_spec_asks_for(
    containers: list[ContainerResources], more: dict[str, Any], set_aside: dict[str, float] | None
) -> None:
    assert pod_totals(containers, **more).set_aside == set_aside


CLAIMED: dict[str, Any] = {"claimed": {"cpu": 2, HUGE: 4}}


@pytest.mark.parametrize(
    ("case", "requests"),
    [
        (Case("added once, sidecars or not", [cpu(1), cpu(1)], {}, [cpu(1, sidecar=True)]), {"cpu": 5, HUGE: 4}),
        (Case("beside an init container, too", [cpu(1)], {}, [cpu(4)]), {"cpu": 6, HUGE: 4}),
        (Case("what was given holds it already", [cpu(1, actual={"cpu": 3})], {}), {"cpu": 3, HUGE: 4}),
        (Case("set aside without it", [cpu(1, allocated={"cpu": 3})], {}), {"cpu": 5, HUGE: 4}),
        (Case("below a pod level", [cpu(1)], {}, more={"pod_level": container({"cpu": 8})}), {"cpu": 8, HUGE: 4}),
        (
            Case(
                "reported of the whole pod",
                [cpu(1)],
                {},
                more={"reported": container(actual={"cpu": 7}, allocated={"cpu": 6}), **INFEASIBLE},
            ),
            {"cpu": 7},
        ),
    ],
    ids=str,
)
def test_what_claims_take_of_the_node_is_requested(case: Case, requests: dict[str, float]) -> None:
    """TestPodRequestsWithDRANodeAllocatable and its neighbours of v1.37 (KEP-5517)."""
    found = pod_totals(case.containers, case.init, **CLAIMED, **case.more)
    assert found.requests == requests
    assert found.nonzero_requests[0] == requests["cpu"]
