"""Pods that lack devices preempt those that hold them: as few as possible, on the right devices, and nothing is left of
what was only tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.device_victims import DeviceHolder, least_in_the_way
from placement.devices.options import DeviceOptions
from placement.plugins import Nomination
from placement.pod_importance import LEAST_STANDING, Cost, cost_of, importance
from tests.scheduler.preemption.made_up import pod
from tests.scheduler.profiles.gpu.preempting import GPU, GpuWorld, gpu_node, share, whole

# Whole devices


def test_the_fewest_go_for_whole_devices() -> None:
    there = [*(whole(f"a{i}", "a", i) for i in range(4)), whole("b0", "b", 0, 1), whole("b1", "b", 2, 3)]
    world = GpuWorld([gpu_node("a", 4), gpu_node("b", 4)], there)
    found = world.preempts(whole("x", gpus=2, priority=10))
    assert found is not None and found[0] == "b" and len(found[1]) == 1
    found = world.preempts(whole("x", gpus=1, priority=10))
    assert found is not None and found[0] == "a" and len(found[1]) == 1
    assert world.preempts(whole("x", gpus=5, priority=10)) is None


# Shares


def test_a_share_takes_the_place_of_as_few_as_possible() -> None:
    there = [
        *(share(f"small{i}", 250, "a", 0, priority=1) for i in range(4)),
        share("half0", 500, "a", 1, priority=1),
        share("half1", 500, "a", 1, priority=1),
    ]
    world = GpuWorld([gpu_node("a", 2)], there)
    found = world.preempts(share("x", 500, priority=10))
    assert found is not None and found[1] in (["half0"], ["half1"])
    found = world.preempts(share("x", 250, priority=10))
    assert found is not None and len(found[1]) == 1


def test_the_oldest_does_not_stay_at_the_expense_of_many() -> None:
    """Upstream's order alone keeps the pod that runs longest, and so takes the four that share the other device."""
    there = [
        share("old", 1000, "a", 0, priority=1, started=1.0),
        *(share(f"new{i}", 250, "a", 1, priority=1, started=100.0 + i) for i in range(4)),
    ]
    world = GpuWorld([gpu_node("a", 2)], there)
    assert world.preempts(share("x", 1000, priority=10)) == ("a", ["old"])


def test_nodes_that_cannot_help_do_not_use_up_the_tries() -> None:
    """On each of twenty some pod of low priority may go, and only on the last one that has the device."""
    nodes = [gpu_node(f"n{i:02}", 1) for i in range(20)]
    there = [share(f"kept{i}", 1000, f"n{i:02}", 0, priority=10) for i in range(19)]
    there += [pod(f"cpu{i}", f"n{i:02}", priority=-5) for i in range(20)]
    there += [share("goes", 1000, "n19", 0, priority=9)]
    world = GpuWorld(nodes, there)
    assert world.preempts(share("x", 400, priority=10)) == ("n19", ["goes"])


def test_the_node_that_costs_least_is_found_among_many() -> None:
    nodes = [gpu_node(f"n{i:02}", 1) for i in range(20)]
    there = [share(f"p{i:02}-{j}", 500, f"n{i:02}", 0, priority=1) for i in range(20) for j in range(2)]
    there[34:36] = [share("one", 800, "n17", 0, priority=1)]
    world = GpuWorld(nodes, there)
    assert world.preempts(share("x", 900, priority=10)) == ("n17", ["one"])


def test_where_devices_are_not_mixed_all_of_the_other_kind_go() -> None:
    there = [share("s0", 100, "a", 0, priority=1), share("s1", 100, "a", 1, priority=1)]
    world = GpuWorld([gpu_node("a", 3)], there, devices=DeviceOptions(mixed=False))
    found = world.preempts(whole("x", priority=10))
    assert found is not None and sorted(found[1]) == ["s0", "s1"]


def test_pods_that_do_not_say_what_they_have_go_too() -> None:
    there = [whole(f"w{i}", "a", priority=1, created=float(i), started=float(i)) for i in range(2)]
    world = GpuWorld([gpu_node("a", 2)], there)
    before = world.devices()
    assert world.preempts(share("x", 500, priority=10)) == ("a", ["w1"])
    assert world.devices() == before


# Offline pods first


def offline_first(one: PodInfo) -> int:
    return LEAST_STANDING if one.labels.get("offline") else one.priority


def test_offline_pods_go_before_pods_with_devices_of_lower_priority() -> None:
    there = [
        whole("train", "a", 0, cpu=8, priority=-100),
        *(pod(f"image{i}", "a", cpu=4, priority=0, labels={"offline": "true"}) for i in range(2)),
    ]
    for standing_of, victims in ((offline_first, ["image0", "image1"]), (lambda one: one.priority, ["train"])):
        world = GpuWorld([gpu_node("a", 2, cpu=16)], there, standing_of=standing_of)
        found = world.preempts(whole("x", cpu=8, priority=10))
        assert found is not None and sorted(found[1]) == victims


# Whatever there is

_Sitting = tuple[int, int, int, int, int, float]  # node, kind, device, thousandths, priority, start

nodes = st.lists(st.tuples(st.integers(1, 3), st.sampled_from((3.0, 6.0, 32.0))), min_size=1, max_size=3)
sitting = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 3),
        st.integers(0, 2),
        st.sampled_from((100, 250, 500, 500, 700, 1000)),
        st.sampled_from((-5, 0, 0, 7, 100)),
        st.sampled_from((1.0, 2.0, 3.0)),
    ),
    min_size=3,
    max_size=10,
)
preemptors = st.tuples(st.sampled_from((200, 500, 900, 1000)), st.integers(0, 2), st.sampled_from((5, 50)))


def cluster(of_nodes: Sequence[tuple[int, float]], of_pods: Sequence[_Sitting]) -> tuple[list[NodeInfo], list[PodInfo]]:
    """Devices are not given out twice: what does not fit is not there."""
    made = [gpu_node(f"n{i}", gpus, cpu=cpu) for i, (gpus, cpu) in enumerate(of_nodes)]
    left = {one.name: [1000] * int(one.allocatable[GPU]) for one in made}
    there: list[PodInfo] = []
    for number, (on, kind, device, milli, priority, started) in enumerate(of_pods):
        name, node = f"p{number}", made[on % len(made)].name
        device %= len(left[node])
        wanted = milli if kind in (0, 1) else 1000 if kind == 2 else 0
        if left[node][device] < wanted:
            continue
        left[node][device] -= wanted
        if kind in (0, 1):
            there.append(share(name, milli, node, device, priority=priority, started=started))
        elif kind == 2:
            there.append(whole(name, node, device, priority=priority, started=started))
        else:
            there.append(pod(name, node, priority=priority, started=started))
    return made, there


def greedy(x: PodInfo, made: Sequence[NodeInfo], there: Sequence[PodInfo]) -> list[Cost]:
    """What SelectVictimsOnNode costs on each node that can be helped, over tables that are made anew each time."""

    def fits(node: str, pods: Sequence[PodInfo]) -> bool:
        return node in GpuWorld(made, pods).feasible(x)

    costs = []
    for row, node in enumerate(made):
        lower = sorted((p for p in there if p.node == node.name and p.priority < x.priority), key=importance)
        left, victims = [p for p in there if p not in lower], []
        if not lower or not fits(node.name, left):
            continue
        for one in lower:
            if fits(node.name, [*left, one]):
                left.append(one)
            else:
                victims.append(one)
        if victims:
            costs.append(cost_of(row, victims, 0))
    return costs


@given(nodes, sitting, preemptors)
@settings(max_examples=60, deadline=None)
def test_whatever_there_is(
    of_nodes: Sequence[tuple[int, float]], of_pods: Sequence[_Sitting], of: tuple[int, int, int]
) -> None:
    milli, gpus, priority = of
    made, there = cluster(of_nodes, of_pods)
    x = whole("x", gpus=gpus, priority=priority) if gpus else share("x", milli, priority=priority)
    world = GpuWorld(made, there)
    if world.feasible(x):
        return
    devices, free = world.devices(), world.free()
    answer = world.asked(x)
    assert (world.devices(), world.free()) == (devices, free), "nothing is left of what was tried"
    assert world.feasible(x) == set()
    expected = greedy(x, made, there)
    assert isinstance(answer, Nomination) == bool(expected)
    if not isinstance(answer, Nomination):
        return
    cost = cost_of(world.view.state.row_of[answer.node], answer.victims, 0)
    assert cost <= min(expected), "no dearer than upstream's"
    assert all(victim.priority < priority and victim.node == answer.node for victim in answer.victims)
    for victim in answer.victims:
        world.delete(victim.uid)
    assert answer.node in world.feasible(x)
    for victim in answer.victims:
        world.put(victim)
        assert answer.node not in world.feasible(x), "none of them could have stayed"
        world.delete(victim.uid)
    for victim in answer.victims:
        world.put(victim)
    assert (world.devices(), world.free()) == (devices, free), "and they have what they had"


# Which device


HELD = [
    DeviceHolder(share("old", 1000, "a", started=1.0), (0,), 1000),
    DeviceHolder(share("half", 500, "a"), (1,), 500),
    DeviceHolder(share("little", 100, "a"), (1,), 100),
]


@pytest.mark.parametrize(
    ("free", "count", "milli", "victims"),
    [
        ([0, 400], 1, 400, []),
        ([0, 400], 1, 450, ["little"]),
        ([0, 400], 1, 900, ["half"]),
        ([0, 400], 1, 1000, ["old"]),
        ([0, 400], 2, 1000, ["old", "half", "little"]),
        ([0, 0], 1, 700, ["old"]),  # somebody who may not go has the rest of the other one
        ([0, 0], 2, 700, None),
        ([0, 400, 1000], 2, 1000, ["old"]),
    ],
)
def test_the_cheapest_devices(free: list[int], count: int, milli: int, victims: list[str] | None) -> None:
    found = least_in_the_way(HELD, free, count, milli, lambda one: one.priority)
    assert (None if found is None else [one.name for one in found]) == victims


def test_a_pod_that_goes_for_one_device_frees_its_others() -> None:
    both = DeviceHolder(replace(whole("both", "a"), priority=1), (0, 1), 1000)
    held = [
        both,
        DeviceHolder(whole("one", "a", priority=1), (2,), 1000),
        DeviceHolder(whole("two", "a", priority=1), (3,), 1000),
    ]
    found = least_in_the_way(held, [0, 0, 0, 0], 2, 1000, lambda one: one.priority)
    assert found is not None and [one.name for one in found] == ["both"]
