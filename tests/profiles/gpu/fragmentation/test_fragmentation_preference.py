"""Pods with cards go where they break the fewest for others; a shared pod gets the card that was judged best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from profiles.gpu.fragmentation.balanced import Balanced
from profiles.gpu.fragmentation.cost_table import CostTable, Judge, states_of_rows
from profiles.gpu.fragmentation.fragmentation_preference import Fragmentation, MakeJudge
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.live_mix import LiveMix
from profiles.gpu.fragmentation.packing_cost import Packing
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix
from tests.profiles.gpu.fragmentation.gpu_world import NOW, GpuWorld, card_node, card_pod


class Preferring(GpuWorld):
    def __init__(self, *nodes: NodeInfo, make_judge: MakeJudge = Packing, slack: float = 1.0) -> None:
        super().__init__(*nodes)
        self.mix = LiveMix(self.state, self.shapes.of, clock=lambda: NOW + 60)
        self.scorer.tables.attach((), self.mix)
        self.fragmentation = Fragmentation(
            self.state, self.devices, self.shapes, self.mix, CostTable(self.state, self.devices), make_judge, slack
        )
        self.devices.choosers.append(self.fragmentation.device_for)

    def preferred(self, pod: PodInfo, n_pods: int = 3) -> tuple[list[str], int]:
        rows = np.arange(self.state.n_rows)
        answer = self.fragmentation.prefer(pod, n_pods, self.view, rows)
        return [self.state.names[row] for row in answer.rows], answer.most

    def assume(self, pod: PodInfo, node: str) -> tuple[int, ...]:
        self.put(pod)
        self.cluster.assume(pod, node, NOW + 100)
        return self.devices.devices_of(pod.uid)


def test_a_shared_pod_gets_a_card_that_is_broken_already() -> None:
    world = Preferring(card_node("a", cards=4))
    world.put(*(card_pod(f"one-{i}", whole=1) for i in range(4)))
    (first,) = world.assume(card_pod("first", milli=400), "a")
    assert world.assume(card_pod("second", milli=600), "a") == (first,)
    assert world.assume(card_pod("third", milli=600), "a") != (first,)


def test_before_any_pod_has_come_all_nodes_are_alike() -> None:
    assert Preferring(card_node("a")).preferred(card_pod("cpu")) == (["a"], 3)


def test_slack_keeps_nodes_that_are_as_good_as_the_best() -> None:
    nodes = (card_node("a", cards=2), card_node("b", cards=2))
    pods = [card_pod("sits", milli=500, node="a"), *(card_pod(f"w{i}", whole=1) for i in range(3))]
    strict, lenient = Preferring(*nodes), Preferring(*nodes, slack=2_000)
    for world in (strict, lenient):
        world.put(*pods)
    assert strict.preferred(card_pod("next", milli=400))[0] == ["a"]
    assert lenient.preferred(card_pod("next", milli=400))[0] == ["a", "b"]


def test_a_new_card_model_is_judged_with_a_new_judge() -> None:
    made: list[int] = []

    def make(mix: ShapeMix, models: Sequence[str], nodes: NodeStates) -> Judge:
        made.append(nodes.n_nodes)
        return Packing(mix, models, nodes)

    world = Preferring(card_node("a"), make_judge=make)
    world.put(card_pod("w", whole=1))
    world.preferred(card_pod("next", whole=1))
    world.preferred(card_pod("next", whole=1))
    before = world.fragmentation.judge
    world.scorer.tables.put(Kind.NODES, card_node("b", model="NVIDIA-H100"))
    assert world.preferred(card_pod("next", whole=1))[0] == ["a", "b"]
    assert world.fragmentation.judge is not before
    assert made == [1], "the mix is the same: prices need not be found again"


def test_balance_fills_what_is_used_least() -> None:
    world = Preferring(card_node("cores-used", cpu=16), card_node("cards-used", cpu=16))
    world.put(card_pod("c", cpu=12, node="cores-used"), card_pod("g", whole=1, cpu=1, node="cards-used"))
    judge = Balanced(world.devices.models, (1, 0, 1))
    nodes = states_of_rows(world.state, world.devices, np.array(world.rows("cores-used", "cards-used")))
    cores, cards = judge.cost(PodShape(2000, 0, 1, 1000), nodes)[0]
    assert cores < cards
    cores, cards = judge.cost(PodShape(2000, 0, 0, 0), nodes)[0]
    assert cards < cores
    cost, device = judge.cost(PodShape(1000, 0, 1, 300), nodes)
    assert np.isfinite(cost).all() and device.tolist() == [0, 1], "the fullest card that has room"
    assert np.isinf(judge.cost(PodShape(1000, 0, 2, 1000), nodes)[0]).tolist() == [False, True]
