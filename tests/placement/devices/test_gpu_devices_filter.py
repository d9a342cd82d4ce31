from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.devices.gpu_devices import GpuDevices
from placement.node_rule_settings import DeviceOptions
from testing.placement.views import passing
from tests.placement.devices.device_world import IDX, INDEX, MILLI, DeviceWorld, card_node, card_pod
from tests.placement.small_cluster import rejections

NODES = (
    card_node("none"),
    card_node("one", 1),
    card_node("four", 4),
    card_node("shares", shared=2, memory=16),
    card_node("large", shared=2, memory=32),
)
PODS = (
    card_pod("a", "one", milli=300, said={INDEX: "0"}),
    card_pod("b", "four", n=3, said={INDEX: "0,1,2"}),
    card_pod("c", "four", milli=800, said={INDEX: "3"}),
    card_pod("d", "shares", memory=12, said={INDEX: "0"}),
    card_pod("e", "shares", memory=12, said={INDEX: "1"}),
)
TAKEN, NO_SHARE = "node(s) had too few free devices", "node(s) had no device with enough free thousandths"
NO_DEVICES = "node(s) had no devices"
TOO_SMALL = "node(s) had no device that is large enough"


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(card_pod("p"), {}, id="asks for none"),
        pytest.param(
            card_pod("p", n=1),
            {"none": (NO_DEVICES, False), "one": (TAKEN, True), "four": (TAKEN, True), "shares": (TAKEN, True)},
            id="a card",
        ),
        pytest.param(
            card_pod("p", milli=250),
            {"none": (NO_DEVICES, False), "four": (NO_SHARE, True)},
            id="a share that is left over in some places",
        ),
        pytest.param(
            card_pod("p", memory=5),
            {
                "none": (NO_DEVICES, False),
                "one": (TOO_SMALL, False),
                "four": (TOO_SMALL, False),
                "shares": (NO_SHARE, True),
            },
            id="memory of which the node has enough, but no card",
        ),
        pytest.param(
            card_pod("p", memory=20),
            {name: (NO_DEVICES if name == "none" else TOO_SMALL, False) for name in ("none", "one", "four", "shares")},
            id="more memory than a card has",
        ),
    ],
)
def test_where_a_pod_cannot_go(pod: PodInfo, expected: dict[str, tuple[str, bool]]) -> None:
    world = DeviceWorld(NODES, PODS)
    assert rejections(GpuDevices(world.table), pod, world.view) == expected


def test_pods_with_mistakes_go_nowhere() -> None:
    world = DeviceWorld(NODES)
    said = rejections(GpuDevices(world.table), card_pod("p", milli="a lot"), world.view)
    reason = f"annotation {MILLI} is 'a lot': it must be a whole number from 1 to 1000"
    assert said == {node.name: (reason, False) for node in NODES}


def test_whole_and_shared_cards_can_be_kept_apart() -> None:
    options = DeviceOptions(mixed=False)
    pods = [card_pod("b", "four", n=1, said={INDEX: "0"}), card_pod("a", "other", milli=300, said={INDEX: "0"})]
    world = DeviceWorld([card_node("four", 4), card_node("other", 4), card_node("empty", 4)], pods, options)
    tested = GpuDevices(world.table)
    assert rejections(tested, card_pod("p", milli=100), world.view) == {
        "four": ("node(s) had devices handed out whole, and the pod asks for a share", True)
    }
    assert rejections(tested, card_pod("p", n=1), world.view) == {
        "other": ("node(s) had shared devices, and the pod requests whole ones", True)
    }
    assert rejections(tested, card_pod("p", milli=1000), world.view).keys() == {"four"}  # handed out by its index
    for pod in (card_pod("p", milli=100), card_pod("p", n=4), card_pod("p", n=1)):
        there = [one for one in world.state.pods.values() if one.name == ("b" if not pod.requests else "a")]
        row = world.state.row_of[there[0].node]
        assert tested.least_victims(pod, row, there, lambda one: one.priority) == there
        assert tested.least_victims(pod, row, [], lambda one: one.priority) is None
    world.delete("b")
    assert passing(tested, card_pod("p", milli=100), world.view) == {"four", "other", "empty"}


def test_of_thirds_of_the_memory_one_is_in_the_way_of_another_and_three_of_a_whole_card() -> None:
    pods = [card_pod(f"p{i}", "a", memory=8, said={IDX: "0"}) for i in range(3)]
    world = DeviceWorld([card_node("a", shared=1, memory=24)], pods)
    tested = GpuDevices(world.table)

    def victims(pod: PodInfo) -> list[str] | None:
        found = tested.least_victims(pod, 0, pods, lambda one: one.priority)
        return None if found is None else [one.name for one in found]

    assert victims(card_pod("p", memory=8)) == ["p2"] and victims(card_pod("p", memory=9)) == ["p1", "p2"]
    assert victims(card_pod("p", milli=334)) == ["p1", "p2"] and victims(card_pod("p", milli=1000)) == [
        "p0",
        "p1",
        "p2",
    ]
    assert victims(card_pod("p", memory=25)) is None and victims(card_pod("p", n=2)) is None
    assert victims(card_pod("p")) == []


ASKED = st.sampled_from(
    ({"n": 1}, {"n": 2}, {"n": 3}, {"milli": 300}, {"milli": 450}, {"memory": 4}, {"memory": 5, "milli": 400}, {})
)


@settings(max_examples=50, deadline=None)
@given(there=st.lists(st.tuples(ASKED, st.integers(0, 2)), max_size=10), asks=ASKED)
def test_room_is_how_many_pods_go_there_one_after_the_other(
    there: list[tuple[dict[str, Any], int]], asks: dict[str, Any]
) -> None:
    world = DeviceWorld([card_node("x", 3), card_node("y", shared=2, memory=12), card_node("z", 8)])
    tested = GpuDevices(world.table)
    for i, (one, row) in enumerate(there):
        pod = card_pod(f"there-{i}", **one)
        if world.state.names[row] in passing(tested, pod, world.view):
            world.assume(pod, world.state.names[row])
    pod = card_pod("p", **asks)
    rows = np.array([world.state.row_of[name] for name in sorted(passing(tested, pod, world.view))], dtype=np.int64)
    room = tested.room(pod, world.view, rows)
    assert room.shape == rows.shape
    if not asks:
        assert (room >= 2**40).all()
        return
    for row, expected in zip(rows.tolist(), room.tolist(), strict=True):
        placed = 0
        while world.state.names[row] in passing(tested, pod, world.view):
            world.assume(card_pod(f"{row}-{placed}", **asks), world.state.names[row])
            placed += 1
        assert placed == expected
    assert not world.table.conflicts()


def test_what_may_let_a_pod_in() -> None:
    tested = GpuDevices(DeviceWorld().table)
    pod, share = card_pod("p", n=2), card_pod("s", milli=100)

    def hint(event: ClusterEvent, of: PodInfo = pod) -> bool:
        assert event.kind in tested.woken_by
        return tested.hint(of, event) is Hint.QUEUE

    left, added, changed = EventKind.POD_LEFT, EventKind.NODE_ADDED, EventKind.NODE_CHANGED
    assert hint(ClusterEvent(left, pod=card_pod("q", "a", milli=1))) and hint(ClusterEvent(left))
    assert not hint(ClusterEvent(left, pod=card_pod("q", "a")))
    assert hint(ClusterEvent(added, node=card_node("a", 2))) and not hint(ClusterEvent(added, node=card_node("a", 1)))
    assert hint(ClusterEvent(added, node=card_node("a", 1)), share)
    same = ClusterEvent(changed, node=card_node("a", 2), before=replace(card_node("a", 2), unschedulable=True))
    assert not hint(same) and hint(replace(same, before=card_node("a", 1)))
    wrong = card_pod("w", milli="x")
    assert not hint(ClusterEvent(added, node=card_node("a", 2)), wrong)
    assert hint(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=wrong), wrong)
    assert not hint(ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=wrong), pod)
