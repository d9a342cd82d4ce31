from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from forecast.service_key import Owner
from kube.objects.objects import NodeInfo, PodInfo
from placement.card_types.listed_cards import ListedCards
from placement.node_rule_settings import CardOptions, Protection
from testing.placement.views import PASSES, Verdict, node_named, passing, pod_with, verdicts, view_of

GPU, SHARED = "nvidia.com/gpu", "aliyun.com/gpu-mem"
WITHOUT = Verdict.no("node(s) had cards, and the pod asks for none")
APART = ListedCards(CardOptions(without_cards=Protection.HARD))


def node(name: str, product: str = "", devices: Mapping[str, float] | None = None) -> NodeInfo:
    labels = {"nvidia.com/gpu.product": product} if product else {}
    return node_named(name, labels=labels, allocatable={"cpu": 4.0, "pods": 110.0, **(devices or {})})


VIEW = view_of(
    [
        node("plain", "", {GPU: 0.0}),
        node("a100", "NVIDIA-A100-SXM4-80GB", {GPU: 8.0}),
        node("a10", "NVIDIA-A10", {GPU: 1.0}),
        node("t4", "Tesla-T4", {GPU: 4.0}),
        node("shared", "", {"aliyun.com/gpu-count": 2.0}),
    ]
)
CARDS = {"a100", "a10", "t4", "shared"}


def pod(
    types: str | None = None, devices: Mapping[str, int] | None = None, *, preferred: str = "", **said: str
) -> PodInfo:
    containers = [{"name": "c", "resources": {"requests": dict(devices or {})}}]
    annotations = {f"forecast-scheduler.io/{key.replace('_', '-')}": value for key, value in said.items()}
    if types is not None:
        annotations["forecast-scheduler.io/gpu-type"] = types
    if preferred:
        annotations["forecast-scheduler.io/gpu-type-preferred"] = preferred
    return pod_with({"containers": containers}, annotations=annotations)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(pod(), {"plain"}, id="asks for nothing"),
        pytest.param(pod(None, {GPU: 1}), {"plain"} | CARDS, id="asks for a card"),
        pytest.param(pod(None, {SHARED: 1}), {"plain"} | CARDS, id="asks for memory of a card"),
        pytest.param(pod(gpu_milli="500"), {"plain"} | CARDS, id="asks for a share"),
        pytest.param(pod("a100, T4", {GPU: 1}), {"a100", "t4"}, id="names two types, whatever their case"),
        pytest.param(pod("A10", {GPU: 1}), {"a10"}, id="whole words only"),
        pytest.param(pod("V100", {GPU: 1}), set(), id="names a type that nobody has"),
        pytest.param(pod("--", {GPU: 1}), set(), id="names no word"),
        pytest.param(pod("A100"), set(), id="names a type but asks for no card"),
    ],
)
def test_nodes_with_cards_are_kept_free_of_pods_that_ask_for_none(wanted: PodInfo, expected: set[str]) -> None:
    assert passing(APART, wanted, VIEW) == expected


def test_reasons() -> None:
    wrong_type = Verdict.no("node(s) didn't have a card of type A100 or T4")

    assert verdicts(APART, pod(), VIEW)["t4"] == WITHOUT
    found = verdicts(APART, pod("A100,T4", {GPU: 1}), VIEW)
    assert (found["a10"], found["plain"], found["t4"]) == (wrong_type, wrong_type, PASSES)
    (many,) = verdicts(APART, pod(",".join("abcdefg"), {GPU: 1}), view_of([node("n", "", {GPU: 1.0})])).values()
    assert many == Verdict.no("node(s) didn't have a card of type a or b or c or d or e or others")


def test_soft_rejects_nothing_and_says_what_comes_last() -> None:
    soft = ListedCards(CardOptions(rare_types=("A100",)))

    assert not soft.filter(pod(), VIEW)
    assert soft.last(pod(), VIEW).tolist() == [False, True, True, True, True]
    assert soft.last(pod(None, {GPU: 1}), VIEW).tolist() == [False, True, False, False, False]
    assert not soft.last(pod("A100", {GPU: 1}), VIEW).any()
    assert passing(soft, pod("T4", {GPU: 1}), VIEW) == {"t4"}
    off = ListedCards(CardOptions(protection=Protection.OFF, rare_types=("A100",), without_cards=Protection.OFF))
    assert not off.filter(pod(), VIEW) and not off.last(pod(), VIEW).any()


def test_rare_types_are_kept_for_pods_that_name_them() -> None:
    tested = ListedCards(CardOptions(protection=Protection.HARD, rare_types=("A100",)))
    others = {"plain", "a10", "t4", "shared"}

    assert passing(tested, pod(None, {GPU: 1}), VIEW) == passing(tested, pod(), VIEW) == others
    assert passing(tested, pod("A100", {GPU: 1}), VIEW) == {"a100"}
    assert passing(tested, pod("T4", {GPU: 1}), VIEW) == {"t4"}
    assert passing(tested, pod(None, {GPU: 1}, preferred="A100"), VIEW) == others | {"a100"}
    free_to_go = ListedCards(
        CardOptions(protection=Protection.HARD, rare_types=("A100",), without_cards=Protection.OFF)
    )
    assert passing(free_to_go, pod(), VIEW) == others | {"a100"}


def test_offline_pods_and_members_of_a_pod_group_are_not_kept_apart() -> None:
    launcher = replace(pod(), labels={"scheduling.x-k8s.io/pod-group": "train"})
    assert passing(APART, launcher, VIEW) == {"plain"} | CARDS
    assert APART.last(launcher, VIEW).any()
    lenient = ListedCards(CardOptions(without_cards=Protection.HARD), is_offline=lambda pod: True)
    assert passing(lenient, pod(), VIEW) == {"plain"} | CARDS and not lenient.last(pod(), VIEW).any()


def test_pods_of_a_daemon_set_go_everywhere() -> None:
    agent = replace(pod("V100"), owner=Owner("DaemonSet", "agent"))
    strict = ListedCards(CardOptions(protection=Protection.HARD, rare_types=("A100",), without_cards=Protection.HARD))

    assert not strict.filter(agent, VIEW) and not strict.last(agent, VIEW).any()
