"""Tables of framework/plugins/noderesources/fit_test.go: a node of 10m CPU, 20 bytes, 32 pods, 5 devices."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.objects import NodeInfo, PodInfo
from placement.filters.node_resources_fit import NodeResourcesFit
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict

A, B = "example.com/aaa", "example.com/bbb"
NATIVE, HUGE, STORAGE = "kubernetes.io/something", "hugepages-2Mi", "ephemeral-storage"
DEVICES = "extended.resource.dra.io/something"

Json = dict[str, Any]


def node(pods: float = 32.0, **more: float) -> NodeInfo:
    amounts = {"cpu": 0.01, "memory": 20.0, "pods": pods, A: 5.0, STORAGE: 20.0, HUGE: 5.0, **more}
    return node_named("n", allocatable=amounts)


def asks(milli_cpu: int = 0, memory: int = 0, **scalars: int) -> Json:
    """A container."""
    requests = {"cpu": f"{milli_cpu}m", "memory": memory, **scalars}
    return {"name": "c", "resources": {"requests": requests}}


def pod(*containers: Json, init: list[Json] | None = None, name: str = "p", node: str = "", **spec: Any) -> PodInfo:
    return pod_with({"containers": list(containers), "initContainers": init or [], **spec}, name=name, node=node)


def other(*containers: Json) -> PodInfo:
    return pod(*containers, name="other", node="n")


def lacks(*kinds: str) -> Verdict:
    return Verdict.no(*(f"Insufficient {kind}" for kind in kinds), preemptible=True)


def too_small(*kinds: str) -> Verdict:
    return Verdict.no(*(f"Insufficient {kind}" for kind in kinds))


def case(name: str, wanted: PodInfo, there: Json, expected: Verdict) -> Any:
    return pytest.param(wanted, other(there), expected, id=name)


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        case("no resources requested always fits", pod(), asks(10, 20), PASSES),
        case("too many resources fails", pod(asks(1, 1)), asks(10, 20), lacks("cpu", "memory")),
        case("init container cpu", pod(asks(1, 1), init=[asks(3, 1)]), asks(8, 19), lacks("cpu")),
        case("highest init container cpu", pod(asks(1, 1), init=[asks(3, 1), asks(2, 1)]), asks(8, 19), lacks("cpu")),
        case("init container fits: the maximum, not the sum", pod(asks(1, 1), init=[asks(1, 1)]), asks(9, 19), PASSES),
        case("one resource memory fits", pod(asks(2, 1)), asks(9, 5), lacks("cpu")),
        case("equal edge case", pod(asks(5, 1)), asks(5, 19), PASSES),
        case("extended resource fits", pod(asks(**{A: 1})), asks(), PASSES),
        case("extended resource capacity enforced", pod(asks(1, 1, **{A: 10})), asks(), too_small(A)),
        case("extended resource allocatable enforced", pod(asks(1, 1, **{A: 1})), asks(**{A: 5}), lacks(A)),
        case("admits init containers", pod(asks(), init=[asks(1, 1, **{A: 3})] * 2), asks(**{A: 2}), PASSES),
        case("largest init", pod(asks(), init=[asks(1, **{A: 6}), asks(1, **{A: 3})]), asks(**{A: 2}), too_small(A)),
        case("unknown resource", pod(asks(1, 1, **{B: 1})), asks(), too_small(B)),
        case("kubernetes.io resource", pod(asks(1, 1, **{NATIVE: 10})), asks(), too_small(NATIVE)),
        case("hugepages added", pod(asks(1, **{HUGE: 3}), asks(1, **{HUGE: 3})), asks(**{HUGE: 2}), too_small(HUGE)),
        case("overhead fits", pod(asks(1, 1), overhead={"cpu": "3m", "memory": "13"}), asks(5, 5), PASSES),
        case("overhead does not fit", pod(asks(1, 1), overhead={"memory": "15"}), asks(5, 5), lacks("memory")),
        case("zero of an overcommitted resource", pod(asks(1, 1, **{A: 0})), asks(**{A: 6}), PASSES),
        case("pod level fits", pod(asks(1, 1), resources={"requests": {"cpu": "1m"}}), asks(5, 5), PASSES),
        case("pod level cpu", pod(asks(1, 1), resources={"requests": {"cpu": "7m"}}), asks(5, 5), lacks("cpu")),
        case("pod level hugepages", pod(resources={"requests": {HUGE: 10, "cpu": "3m"}}), asks(), too_small(HUGE)),
        case("a sidecar stays", pod(asks(3), init=[asks(3) | {"restartPolicy": "Always"}]), asks(5), lacks("cpu")),
        case("storage", pod(asks(**{STORAGE: 25})), asks(2, 2), too_small(STORAGE)),
        case("what is no resource to kube-scheduler", pod(asks(1, 1, storage=7, gpu=1)), asks(), PASSES),
        case("pods cannot be requested", pod(asks(1, 1, pods=100)), asks(), PASSES),
        case("evicting would help one of two", pod(asks(3, 1, **{A: 6})), asks(8), too_small("cpu", A)),
        case("beyond 64 bits", pod(asks(1, 10**25)), asks(), too_small("memory")),
    ],
)  # fmt: skip
def test_upstream(wanted: PodInfo, there: PodInfo, expected: Verdict) -> None:
    assert verdict(NodeResourcesFit(), wanted, node(), [there]) == expected


@pytest.mark.parametrize(
    "wanted", [pod(), pod(asks(1, 1)), pod(asks(5, 1)), pod(asks(5, 1), init=[asks(5, 1)])], ids=str
)
def test_no_space_for_another_pod(wanted: PodInfo) -> None:
    expected = Verdict.no("Too many pods", preemptible=True)

    assert verdict(NodeResourcesFit(), wanted, node(pods=1.0), [other(asks(5, 5))]) == expected


def test_ignored_resources() -> None:
    wanted = pod(asks(1, 1, **{B: 1, NATIVE: 1}))

    assert verdict(NodeResourcesFit(ignored_resources=[B]), wanted, node()) == too_small(NATIVE)
    assert verdict(NodeResourcesFit(ignored_groups=["example.com"]), wanted, node()) == too_small(NATIVE)
    assert verdict(NodeResourcesFit(ignored_resources=[NATIVE]), wanted, node()) == too_small(B, NATIVE)


def test_resources_of_a_device_class() -> None:
    tested = NodeResourcesFit(device_class_resources=[DEVICES, A])

    assert verdict(tested, pod(asks(**{DEVICES: 1})), node()) == PASSES
    assert verdict(tested, pod(asks(**{DEVICES: 1})), node(**{DEVICES: 0.0})) == PASSES
    assert verdict(tested, pod(asks(**{A: 6})), node()) == too_small(A)


@pytest.mark.parametrize("cores", ["570m", "0.57", "0.1", "0.3", "3.92", "1.1"])
def test_a_pod_as_large_as_the_node_fits(cores: str) -> None:
    """In floats 0.57 cores are a little more than 570 milli-cores, and 0.1 + 0.2 more than 0.3."""
    whole = node_named(
        "n", allocatable={"cpu": float(cores.removesuffix("m")) / (1000 if "m" in cores else 1), "pods": 9.0}
    )

    assert (
        verdict(NodeResourcesFit(), pod_with({"containers": [{"resources": {"requests": {"cpu": cores}}}]}), whole)
        == PASSES
    )


def test_fractions_of_a_unit_are_rounded_up() -> None:
    half = node_named("n", allocatable={"cpu": 0.0005, "memory": 0.5, "pods": 9.0})

    assert verdict(NodeResourcesFit(), pod(asks(1, 1)), half) == PASSES
