from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from kube.objects.objects import PodInfo, PodPhase
from placement.devices.device_demand import GpuDemand
from placement.node_rule_settings import DeviceOptions
from placement.what_if import WithoutPods
from tests.placement.devices.device_world import GPU, IDX, INDEX, DeviceWorld, card_node, card_pod


def test_nodes_with_cards_have_columns_and_others_have_none() -> None:
    world = DeviceWorld(
        [card_node("a", 2, model="Tesla-T4"), card_node("b"), card_node("c", shared=3, memory=16, model="A10")]
    )
    table, row_of = world.table, world.state.row_of
    assert {name: int(table.n_devices[row]) for name, row in row_of.items()} == {"a": 2, "b": 0, "c": 3}
    assert table.free_milli[row_of["a"]].tolist() == [1000, 1000] + [-1] * 6
    assert table.free_milli[row_of["b"]].tolist() == [-1] * 8
    models = {name: int(table.model[row]) for name, row in row_of.items()}
    assert models["b"] == -1 and table.models[models["a"]] == "Tesla-T4" and table.models[models["c"]] == "A10"
    assert table.device_memory[row_of["c"]] == 16 and table.free_whole[row_of["c"]] == 3
    assert table.milli_on(GpuDemand(1, 1, 4))[row_of["c"]] == 250 and table.milli_on(GpuDemand(1, 1, 4))[0] == 1001


def test_an_assumed_pod_gets_devices_that_it_keeps_once_it_is_bound_and_after_a_restart() -> None:
    world = DeviceWorld([card_node("a", 4)])
    assert world.assume(card_pod("whole", n=2), "a") == (0, 1)
    assert world.assume(card_pod("share", milli=300), "a") == (2,)
    assert world.assume(card_pod("second", milli=700), "a") == (2,)
    assert world.free("a") == [0, 0, 0, 1000]
    pods = [world.bound(name) for name in ("whole", "share", "second")]
    assert [pod.annotations[INDEX] for pod in pods] == ["0,1", "2", "2"]
    for pod in pods:
        world.put(pod)
    world.delete("whole")
    assert world.free("a") == [1000, 1000, 0, 1000] and not world.table._choices
    again = DeviceWorld([card_node("a", 4)], reversed(pods))
    assert again.free("a") == [0, 0, 0, 1000] and again.devices("second") == (2,)


def test_a_pod_that_is_bound_without_its_annotation_keeps_what_was_chosen() -> None:
    world = DeviceWorld([card_node("a", 3)], [card_pod("old", "a", n=1, said={INDEX: "0"})])
    assert world.assume(card_pod("p", n=1), "a") == (1,)
    world.put(replace(world.state.pods["default/p"], phase=PodPhase.RUNNING))
    world.delete("old")
    assert world.devices("p") == (1,)
    with WithoutPods(world.view) as what_if:
        what_if.take("default/p")
        assert world.free("a") == [1000, 1000, 1000]
    assert world.devices("p") == (1,)


def test_of_pods_of_others_nobody_knows_more_than_that_they_are_there() -> None:
    known = card_pod("known", "a", n=1, said={INDEX: "1"}, created=9)
    pods = [
        known,
        card_pod("old", "a", n=1, created=1),
        card_pod("older", "a", n=2, created=0),
        card_pod("share", "a", milli=400, created=0),
    ]
    for order in itertools.permutations(pods):
        world = DeviceWorld([card_node("a", 6)])
        world.put(*order)
        assert world.devices("known") == (1,)
        assert world.devices("older") == (0, 2) and world.devices("old") == (3,) and world.devices("share") == (4,)
        assert world.free("a") == [0, 0, 0, 0, 600, 1000]


def test_more_devices_than_ever_before_make_room_for_their_columns() -> None:
    world = DeviceWorld([card_node("a", 2), card_node("b", 20)], [card_pod("p", "a", milli=1)])
    assert world.table.free_milli.shape == (2, 20) and world.free("a") == [999, 1000]
    assert world.table.free_milli[0, 2:].tolist() == [-1] * 18
    world.put(card_node("b", 10**9))
    assert world.table.n_devices[1] == 1024


def test_shares_by_memory_depend_on_the_node() -> None:
    world = DeviceWorld([card_node("a", shared=2, memory=16), card_node("b", shared=2, memory=24)])
    pod = card_pod("p", memory=4)
    assert world.assume(pod, "a") == (0,) and world.free("a") == [750, 1000]
    said = world.table.annotations_of(pod, "a")
    assert said == {
        INDEX: "0",
        IDX: "0",
        "ALIYUN_COM_GPU_MEM_POD": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "16",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1795370000000000000",
    }
    assert world.table.annotations_of(pod, "b") == {}
    world.assume(card_pod("q", memory=5), "b")
    assert world.free("b") == [1000 - 209, 1000]  # 1000 * 5 / 24, rounded up
    world.assume(card_pod("r", memory=1, milli=900), "b")
    assert world.free("b") == [1000 - 209, 100]
    assert world.table.typical_demand(GpuDemand(1, 1, 4)) == GpuDemand(1, 166)


def test_three_thirds_of_the_memory_fill_a_card() -> None:
    world = DeviceWorld([card_node("a", shared=2, memory=24)])
    assert [world.assume(card_pod(f"p{i}", memory=8), "a") for i in range(4)] == [(0,), (0,), (0,), (1,)]
    assert world.free("a") == [0, 666] and not world.table.conflicts()
    assert world.table.free_memory[0, :3].tolist() == [0, 16, 0] and world.table.most_free_memory[0] == 16
    for name in ("p0", "p1", "p2", "p3"):
        world.bind(name)
    assert DeviceWorld([card_node("a", shared=2, memory=24)], world.state.pods.values()).free("a") == [0, 666]


def test_a_unit_of_memory_counts_where_it_is_less_than_a_thousandth() -> None:
    world = DeviceWorld([card_node("a", shared=2, memory=16384)])
    assert world.assume(card_pod("p", memory=16000), "a") == (0,)
    assert world.assume(card_pod("q", memory=16087), "a") == (1,)
    assert world.free("a") == [23, 18] and world.table.free_memory[0, :2].tolist() == [384, 297]
    world.table.choosers.append(lambda row, demand, pod: (1,))  # by thousandths there is room
    assert world.table.milli_on(GpuDemand(1, 1, 300))[0] == 18
    assert world.assume(card_pod("r", memory=300), "a") == (0,)
    assert world.table.most_free_memory[0] == 297 and not world.table.conflicts()


def test_whoever_chooses_is_asked_and_what_is_not_free_is_not_taken() -> None:
    asked: list[tuple[int, GpuDemand, str]] = []
    answers: list[tuple[int, ...] | None] = [(3,), (3,), (0, 0), (9,), None]

    def choose(row: int, demand: GpuDemand, pod: PodInfo) -> tuple[int, ...] | None:
        asked.append((row, demand, pod.name))
        return answers.pop(0)

    world = DeviceWorld([card_node("a", 4)])
    world.table.choosers.append(choose)
    assert world.assume(card_pod("p", milli=600), "a") == (3,)
    assert asked == [(0, GpuDemand(1, 600), "p")]
    assert world.assume(card_pod("q", milli=600), "a") == (0,)  # device 3 has too little left: best fit
    assert world.assume(card_pod("r", n=2), "a") == (1, 2)
    assert world.assume(card_pod("s", milli=400), "a") == (0,)
    assert world.assume(card_pod("t", milli=400), "a") == (3,)


def test_devices_by_other_names() -> None:
    world = DeviceWorld([card_node("a", 2)], options=DeviceOptions(resources=("example.com/npu", GPU)))
    assert world.assume(replace(card_pod("p"), requests={GPU: 1.0}), "a") == (0,)


@pytest.mark.parametrize("kept", [True, False])
def test_an_annotation_that_is_edited_is_followed(kept: bool) -> None:
    world = DeviceWorld([card_node("a", 3)], [card_pod("p", "a", n=1, said={INDEX: "2"})])
    world.put(card_pod("p", "a", n=1, said={INDEX: "1"} if kept else {}))
    assert world.devices("p") == ((1,) if kept else (0,))
