from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from extender.card_types.rare_devices import RareDevices
from forecast.service_key import Owner
from scorer.cluster.objects import NodeInfo, PodInfo
from tests.extender.views import PASSES, Verdict, node_named, passing, pod_with, verdicts, view_of

GPU, NPU = "nvidia.com/gpu", "example.com/npu"
RESERVED = Verdict.no("node(s) were kept free for pods that ask for their devices")


def node(name: str, product: str = "", devices: Mapping[str, float] | None = None) -> NodeInfo:
    labels = {"nvidia.com/gpu.product": product} if product else {}
    return node_named(name, labels=labels, allocatable={"cpu": 4.0, "pods": 110.0, **(devices or {})})


VIEW = view_of(
    [
        node("plain", "", {GPU: 0.0}),
        node("a100", "NVIDIA-A100-SXM4-80GB", {GPU: 8.0}),
        node("a10", "NVIDIA-A10", {GPU: 1.0}),
        node("t4", "Tesla-T4", {GPU: 4.0}),
        node("npu", "", {NPU: 2.0}),
    ]
)


def pod(types: str | None = None, devices: Mapping[str, int] | None = None) -> PodInfo:
    containers = [{"name": "c", "resources": {"requests": dict(devices or {})}}]
    annotations = {} if types is None else {"forecast-scheduler.io/gpu-type": types}
    return pod_with({"containers": containers}, annotations=annotations)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(pod(), {"plain"}, id="asks for nothing"),
        pytest.param(pod(None, {GPU: 0}), {"plain"}, id="asks for none"),
        pytest.param(pod(None, {GPU: 1}), {"plain", "a100", "a10", "t4"}, id="asks for a card"),
        pytest.param(pod(None, {NPU: 1}), {"plain", "npu"}, id="asks for another device"),
        pytest.param(pod(None, {GPU: 1, NPU: 1}), {"plain", "a100", "a10", "t4", "npu"}, id="asks for both"),
        pytest.param(pod("A100", {GPU: 1}), {"a100"}, id="names a type"),
        pytest.param(pod("a100, T4", {GPU: 1}), {"a100", "t4"}, id="names two types, whatever their case"),
        pytest.param(pod("A10", {GPU: 1}), {"a10"}, id="whole words only"),
        pytest.param(pod("NVIDIA-A100-SXM4-80GB", {GPU: 1}), {"a100"}, id="names the product"),
        pytest.param(pod("A100-SXM4", {GPU: 1}), {"a100"}, id="names a part of it"),
        pytest.param(pod("V100", {GPU: 1}), set(), id="names a type that nobody has"),
        pytest.param(pod(" ,", {GPU: 1}), {"plain", "a100", "a10", "t4"}, id="names nothing"),
        pytest.param(pod("--", {GPU: 1}), set(), id="names no word"),
        pytest.param(pod("A100"), set(), id="names a type but asks for no card"),
    ],
)
def test_kept_free_of_others(wanted: PodInfo, expected: set[str]) -> None:
    assert passing(RareDevices([GPU, NPU]), wanted, VIEW) == expected


def test_reasons() -> None:
    tested = RareDevices([GPU])
    wrong_type = Verdict.no("node(s) didn't have a card of type A100 or T4")

    assert verdicts(tested, pod(), VIEW)["t4"] == RESERVED
    found = verdicts(tested, pod("A100,T4", {GPU: 1}), VIEW)
    assert (found["a10"], found["plain"], found["t4"]) == (wrong_type, wrong_type, PASSES)
    (many,) = verdicts(tested, pod(",".join("abcdefg"), {GPU: 1}), view_of([node("n", "", {GPU: 1.0})])).values()
    assert many == Verdict.no("node(s) didn't have a card of type a or b or c or d or e or others")


def test_soft_leaves_it_to_the_score() -> None:
    soft = RareDevices([GPU, NPU], hard=False)

    assert not soft.filter(pod(), VIEW)
    assert soft.reserved_for_others(pod(), VIEW).tolist() == [False, True, True, True, True]
    assert soft.reserved_for_others(pod(None, {GPU: 1}), VIEW).tolist() == [False, False, False, False, True]
    assert passing(soft, pod("T4", {GPU: 1}), VIEW) == {"t4"}


def test_rare_types_are_kept_for_pods_that_name_them() -> None:
    tested = RareDevices([GPU], types=["A100"])

    assert passing(tested, pod(None, {GPU: 1}), VIEW) == {"plain", "a10", "t4", "npu"}
    assert passing(tested, pod("A100", {GPU: 1}), VIEW) == {"a100"}
    assert passing(tested, pod("T4", {GPU: 1}), VIEW) == {"t4"}


def test_other_labels_say_the_type() -> None:
    view = view_of([node_named("mine", labels={"card": "MI300X"}), node("other", "NVIDIA-A100")])

    assert passing(RareDevices([], type_labels=["card"]), pod("MI300X"), view) == {"mine"}
    assert passing(RareDevices([], type_labels=["card"]), pod("A100"), view) == set()


def test_pods_of_a_daemon_set_go_everywhere() -> None:
    agent = replace(pod("V100"), owner=Owner("DaemonSet", "agent"))

    assert not RareDevices([GPU], types=["A100"]).filter(agent, VIEW)
    assert not RareDevices([GPU], types=["A100"]).reserved_for_others(agent, VIEW).any()
