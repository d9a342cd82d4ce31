"""Pods that lack devices preempt those that hold them: as few as possible, on the right devices, and nothing is left of
what was only tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.gpu_devices import DeviceHolder, least_in_the_way
from placement.plugins import Nomination
from placement.pod_importance import Cost, cost_of, importance
from tests.profiles.gpu.preempting import GPU, GpuWorld, gpu_node, share, whole
from tests.scheduler.preemption.made_up import pod

# Whole devices


# Shares


def test_the_oldest_does_not_stay_at_the_expense_of_many() -> None:
    """Upstream's order alone keeps the pod that runs longest, and so takes the four that share the other device."""
    there = [
        share("old", 1000, "a", 0, priority=1, started=1.0),
        *(share(f"new{i}", 250, "a", 1, priority=1, started=100.0 + i) for i in range(4)),
    ]
    world = GpuWorld([gpu_node("a", 2)], there)
    assert world.preempts(share("x", 1000, priority=10)) == ("a", ["old"])


# Offline pods first


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


def test_a_pod_that_goes_for_one_device_frees_its_others() -> None:
    both = DeviceHolder(replace(whole("both", "a"), priority=1), (0, 1), 1000)
    held = [
        both,
        DeviceHolder(whole("one", "a", priority=1), (2,), 1000),
        DeviceHolder(whole("two", "a", priority=1), (3,), 1000),
    ]
    found = least_in_the_way(held, [0, 0, 0, 0], 2, 1000, lambda one: one.priority)
    assert found is not None and [one.name for one in found] == ["both"]
