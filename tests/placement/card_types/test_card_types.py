"""Which types of cards pods go to: the plugin on real tables, and through the placing of a cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from forecast.service_key import Owner
from kube.objects.constraints import PodConstraints
from kube.objects.objects import NodeInfo
from placement.card_types.card_scarcity import CardCollector
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.node_rule_settings import Even, Protection
from tests.placement.card_types.card_world import CardWorld, names, pods, typed
from tests.placement.devices.device_world import card_node

NODES = [
    card_node("plain"),
    card_node("a100", 8, model="NVIDIA-A100-SXM4-80GB"),
    card_node("t4", 8, model="Tesla-T4"),
    card_node("v100", 8, model="Tesla-V100"),
]
A100, T4, V100 = "NVIDIA-A100-SXM4-80GB", "Tesla-T4", "Tesla-V100"


def scarce(protection: Protection = Protection.SOFT, **options: object) -> CardWorld:
    """Six A100 and three V100 of eight each are wanted by pods that name them."""
    wanted = [*pods(6, "A100", prefix="a"), *pods(3, "V100", prefix="v")]
    world = CardWorld(NODES, wanted, protection=protection, **({"band": 0.25} | options))
    assert world.look() == {A100: 0.75, T4: 0.0, V100: 0.375}
    return world


# What a pod requires and prefers


def test_required_types_are_a_filter_whatever_is_protected() -> None:
    for protection in Protection:
        world = CardWorld(NODES, protection=protection)
        assert names(world, [world.plugin], typed("p", "A100,V100")) == {"a100", "v100"}
        assert names(world, [world.plugin], typed("p", "H100")) == set()
        assert names(world, [world.plugin], typed("p")) == {"plain", "a100", "t4", "v100"}


def test_preferred_types_come_first_in_their_order_and_others_when_they_are_full() -> None:
    world = CardWorld(NODES, protection=Protection.OFF, even=Even.OFF)
    placed = world.place(pods(20, preferred="V100,A100"))
    assert Counter(placed) == {"v100": 8, "a100": 8, "t4": 4}
    assert placed[:16] == ["v100"] * 8 + ["a100"] * 8


# Scarce cards


def test_pods_that_name_no_type_go_to_the_least_scarce_first() -> None:
    world = scarce()
    assert world.place(pods(20)) == ["t4"] * 8 + ["v100"] * 8 + ["a100"] * 4


def test_pods_without_cards_are_kept_off_too_unless_they_may() -> None:
    world = scarce()
    cores = [replace(one, requests={"cpu": 4.0}) for one in pods(20, n=0)]
    assert world.place(cores) == ["plain"] * 16 + ["t4"] * 4
    free_to_go = scarce(without_cards=Protection.OFF)
    every_row = np.arange(4)
    assert len(free_to_go.plugin.prefer(typed("p", n=0), 1, free_to_go.view, every_row).rows) == 4
    assert len(free_to_go.plugin.prefer(typed("p"), 1, free_to_go.view, every_row).rows) < 4


def test_hard_keeps_rare_nodes_for_pods_that_name_them() -> None:
    world = scarce(Protection.HARD, rare_from=0.7)
    everywhere = {"plain", "a100", "t4", "v100"}
    assert names(world, [world.plugin], typed("p")) == everywhere - {"a100"}
    assert names(world, [world.plugin], typed("p", n=0)) == everywhere - {"a100"}
    assert names(world, [world.plugin], typed("p", "A100")) == {"a100"}
    assert names(world, [world.plugin], typed("p", preferred="A100")) == everywhere
    assert names(world, [world.plugin], typed("p", preferred="T4")) == everywhere - {"a100"}
    by_label = PodConstraints(node_selector=(("nvidia.com/gpu.product", A100),))
    assert names(world, [world.plugin], typed("p", constraints=by_label)) == everywhere
    agent = typed("p", owner=Owner("DaemonSet", "agent"))
    assert names(world, [world.plugin], agent) == everywhere
    (rejection,) = world.plugin.filter(typed("p"), world.view)
    assert rejection.reason == "node(s) had rare cards that the pod does not name" and not rejection.preemptible
    assert "a100" not in world.place(pods(20))


def test_pods_that_name_scarce_types_are_not_kept_off_them() -> None:
    world = scarce(even=Even.OFF)
    rows = np.array([world.state.row_of[name] for name in ("a100", "t4")])
    assert world.plugin.prefer(typed("p"), 1, world.view, rows).rows.tolist() == [2]
    assert world.plugin.prefer(typed("p", "A100,T4"), 1, world.view, rows).rows.tolist() == [1, 2]


def test_who_accepts_every_model_there_is_makes_none_scarce() -> None:
    world = CardWorld(NODES, pods(8, "A100,T4,V100"))
    assert set(world.look().values()) == {0.0}


def test_a_batch_sees_what_is_rare_as_it_was_at_its_begin() -> None:
    world = scarce(Protection.HARD, rare_from=0.7)
    pod = typed("p")
    assert world.plugin.ignores_like_pods(pod, world.view)
    before = names(world, [world.plugin], pod)
    world.place(pods(8, prefix="q"))
    assert names(world, [world.plugin], pod) == before
    at_once = scarce().place(pods(20, n=0))
    assert scarce().place(pods(20, n=0), one_by_one=True) == at_once


# Fairness


@pytest.mark.parametrize("one_by_one", [False, True])
def test_the_pressure_on_accepted_types_is_kept_even(one_by_one: bool) -> None:
    nodes = [*(card_node(f"a-{i}", 8, model="A100") for i in range(4)), card_node("t", 8, model="T4")]
    world = CardWorld(nodes, pressure_band=0.05)
    placed = Counter(node[0] for node in world.place(pods(20, "A100,T4"), one_by_one=one_by_one))
    assert placed["a"] == pytest.approx(16, abs=1) and placed["t"] == pytest.approx(4, abs=1)


def test_pods_that_name_no_type_are_evened_out_only_on_demand() -> None:
    nodes = [card_node("a", 8, model="A100"), card_node("t", 8, model="T4")]
    rows = np.arange(2)
    for even, expected in {Even.OFF: 2, Even.NAMED: 2, Even.ALL: 1}.items():
        world = CardWorld(nodes, even=even)
        world.assume(typed("x", "A100", n=4), "a")
        assert len(world.plugin.prefer(typed("p"), 1, world.view, rows).rows) == expected
        several = world.plugin.prefer(typed("p", "A100,T4"), 9, world.view, rows)
        assert (several.rows.tolist(), several.most) == (([1], 1) if even is not Even.OFF else ([0, 1], 9))


# Who is told


def event(kind: EventKind, node: NodeInfo | None = None, before: NodeInfo | None = None) -> ClusterEvent:
    return ClusterEvent(kind, node=node, before=before)


def test_hints() -> None:
    node = card_node("n", 8, model="A100")
    cases: Sequence[tuple[ClusterEvent, bool, bool]] = [
        (event(EventKind.NODE_ADDED, node), True, True),
        (event(EventKind.NODE_CHANGED, node, card_node("n", 8, model="T4")), True, True),
        (event(EventKind.NODE_CHANGED, node, replace(node, unschedulable=True)), False, False),
        (event(EventKind.FORECAST_CHANGED), False, True),
        (event(EventKind.POD_LEFT), False, False),
    ]
    for happened, soft, hard in cases:
        for protection, expected in ((Protection.SOFT, soft), (Protection.HARD, hard)):
            hint = CardWorld(protection=protection).plugin.hint(typed("p"), happened)
            assert (hint is Hint.QUEUE) == expected, (happened.kind, protection)


def test_metrics_say_the_latest() -> None:
    world = scarce(Protection.HARD, rare_from=0.7)
    found = {
        (sample.name, sample.labels["model"]): sample.value
        for family in CardCollector(world.scarcity).collect()
        for sample in family.samples
    }
    assert found["forecast_gpu_card_scarcity_ratio", A100] == 0.75
    assert found["forecast_gpu_card_scarcity_class", A100] == 3
    assert found["forecast_gpu_card_rare", A100] == 1 and found["forecast_gpu_card_rare", T4] == 0
    assert found["forecast_gpu_card_wanted_thousandths", V100] == 3000
    assert found["forecast_gpu_card_waiting_thousandths", V100] == 3000
