"""A gang preempts as a whole: fewest victims for all of its members, or none at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kube.decoding.decoding import Kind
from kube.objects.constraints import LabelSelector, Operator, PodAffinityTerm, PodConstraints, Requirement
from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.gpu_devices import GpuDevices
from placement.filters.filter import Filter
from placement.topology.gang_topology import GangTopology
from scheduler.preemption.nominated_devices import NominatedDevices
from scheduler.preemption.victim_gangs import others_of_broken_gangs
from tests.profiles.gpu.preempting import gpu_node, share
from tests.scheduler.preemption.gang_world import GangWorld, gang, least_cost, low, of_gang
from tests.scheduler.preemption.made_up import NOW, budget, node, pod


def high(n: int, *, cpu: float = 1.0, **facts: object) -> list[PodInfo]:
    return [of_gang(pod(f"high-{i}", cpu=cpu, priority=10, **facts), "high") for i in range(n)]  # type: ignore[arg-type]


def full(n_nodes: int, per_node: int = 4) -> list[PodInfo]:
    return [low(f"low-{row}-{i}", f"n{row}") for row in range(n_nodes) for i in range(per_node)]


def nodes_of(n: int) -> list:  # type: ignore[type-arg]
    return [node(f"n{row}") for row in range(n)]


def test_only_the_members_that_are_needed_get_room() -> None:
    members = high(6)
    world = GangWorld(nodes_of(2), [*full(2), *members], [gang("high", 3)])
    world.run(*members)
    assert len(world.nominations) == 3 and len(world.victims) == 3


def test_pods_that_have_just_started_stay() -> None:
    members = high(2)
    there = [low(f"young-{i}", "n0", started=NOW - 10) for i in range(4)]
    world = GangWorld(nodes_of(1), [*there, *members], [gang("high", 2)])
    (rejected,) = world.run(*members).rejected
    assert world.nominations == {} and rejected.retry_seconds == pytest.approx(50.0)


def test_a_member_that_may_not_preempt_has_free_room_or_none() -> None:
    members = high(2)
    never = of_gang(pod("high-n", cpu=1.0, priority=10, may_preempt=False), "high")
    world = GangWorld(nodes_of(1), [*full(1), *members, never], [gang("high", 3)])
    world.run(*members, never)
    assert world.nominations == {}


def test_a_gang_waits_for_its_victims_and_evicts_nobody_else_meanwhile() -> None:
    members = high(2)
    world = GangWorld(nodes_of(2), [*full(2), *members], [gang("high", 2)])
    world.run(*members)
    first = dict(world.nominations)
    (rejected,) = world.run(*members).rejected
    assert world.nominations == first and "has not left the nominated node" in rejected.message
    assert rejected.by == {"DefaultPreemption"}
    assert {one.uid: world.nominated.of(one.uid).victims for one in members} == {  # type: ignore[union-attr]
        name: frozenset(victim.uid for victim in there.victims) for name, there in first.items()
    }


def test_a_gang_is_not_tried_while_its_victims_are_being_evicted() -> None:
    members = high(2)
    world = GangWorld(nodes_of(2), [*full(2), *members], [gang("high", 2)])
    world.run(*members)
    world.nominated.evicting.add("high-0")
    world.scorer.tables.put(Kind.NODES, node("n2"))
    before = world.nominated.version
    (rejected,) = world.run(*members).rejected
    assert rejected.retry_seconds > 0 and world.nominated.version == before, "the executor would see no nomination"
    world.nominated.evicting.clear()
    assert len(world.run(*members).placed) == 2


def test_other_filters_are_asked_of_the_whole_gang() -> None:
    members = [of_gang(pod(f"high-{i}", cpu=1.0, priority=10, ports=(80,)), "high") for i in range(2)]
    there = [low("port-0", "n0", cpu=1.0, ports=(80,)), low("port-1", "n1", cpu=1.0, priority=5, ports=(80,))]
    there += [low("big-0", "n0", cpu=3.0, priority=3), low("small-1", "n1", cpu=1.0)]
    world = GangWorld(nodes_of(2), [*there, *members], [gang("high", 2)])
    world.run(*members)
    assert sorted(world.victims) == ["port-0", "port-1"]


def test_an_attempt_in_vain_while_victims_go_evicts_nobody_else() -> None:
    members = high(2)
    world = GangWorld(nodes_of(1), [*full(1), *members], [gang("high", 2)])
    world.run(*members)
    first = dict(world.nominations)
    gone, stays = world.victims
    world.scorer.tables.delete(Kind.PODS, world.cluster.state.pods[gone])
    (rejected,) = world.run(*members).rejected  # one of them finds room, the other does not
    assert world.nominations == first and rejected.by == {"DefaultPreemption"}
    kept = [world.nominated.of(one.uid) for one in members]
    assert {uid for one in kept if one is not None for uid in one.victims} == {gone, stays}
    world.scorer.tables.delete(Kind.PODS, world.cluster.state.pods[stays])
    assert len(world.run(*members).placed) == 2


def test_room_is_kept_for_a_gang_against_others_and_ends_with_one_of_its_members() -> None:
    members = high(2)
    world = GangWorld(nodes_of(2), [*full(2), *members], [gang("high", 2)])
    world.run(*members)
    n_rows = world.view.n_rows
    assert world.nominated.kept(members[0], n_rows)[0].sum() == 0, "members share what is kept for them"
    assert world.nominated.kept(pod("x", priority=10), n_rows)[0].sum() == 2
    withdrawn: list[str] = []
    world.nominated.on_withdrawn.append(lambda pod: withdrawn.append(pod.name))
    world.scorer.tables.delete(Kind.PODS, members[1])
    assert not len(world.nominated) and withdrawn == ["high-0"]


@pytest.mark.parametrize("near", ["rack", ""])
def test_a_gang_that_must_be_near_each_other_empties_one_domain(near: str) -> None:
    def racks(world: GangWorld) -> Sequence[Filter]:
        return (GangTopology(world.gangs, world.devices, lambda pod: world.profile.filters),)

    members = high(4)
    nodes = [replace(node(f"n{row}"), labels={"rack": f"r{row % 2}"}) for row in range(4)]
    # The cheapest victims are in both racks, one on each node; in each rack they are two.
    there = [low(f"c{row}-{i}", f"n{row}", priority=9 if i else row % 2) for row in range(4) for i in range(4)]
    world = GangWorld(nodes, [*there, *members], [gang("high", 4, near=near)], further=racks)
    world.run(*members)
    used = {int(one.node[1:]) % 2 for one in world.nominations.values()}
    assert len(world.victims) == 4 and used == ({0} if near else {0, 1})
    if not near:
        return
    for victim in world.victims:
        world.scorer.tables.delete(Kind.PODS, world.cluster.state.pods[victim])
    placed = world.run(*members).placed
    assert sorted(on for _, on in placed) == sorted(there.node for there in world.nominations.values())


def test_members_with_shares_of_devices_get_those_of_the_cheapest_pods() -> None:
    def cards(world: GangWorld) -> Sequence[Filter]:
        return GpuDevices(world.devices), NominatedDevices(world.devices, world.nominated)

    members = [of_gang(share(f"high-{i}", 600, priority=10), "high") for i in range(3)]
    # Each node has two devices with a pod on each. One of the four is too important.
    there = [share(f"s{i}", 700, f"n{i // 2}", i % 2, priority=20 if i == 3 else i) for i in range(4)]
    nodes = [gpu_node(f"n{row}") for row in range(2)]
    world = GangWorld(nodes, [*there, *members], [gang("high", 3)], further=cards)
    before = world.devices.free_milli.copy()
    world.run(*members)
    assert sorted(world.victims) == ["s0", "s1", "s2"]
    assert sorted(one.node for one in world.nominations.values()) == ["n0", "n0", "n1"]
    assert (world.devices.free_milli == before).all()
    for victim in world.victims:
        world.scorer.tables.delete(Kind.PODS, world.cluster.state.pods[victim])
    # The room is the gang's: a pod as important that comes first finds none.
    late = share("late", 600, priority=10)
    late = replace(late, scheduler_name=members[0].scheduler_name)
    world.scorer.tables.put(Kind.PODS, late)
    assert not world.run(late, group="").placed
    assert len(world.run(*members).placed) == 3


def _judged(seed: int) -> tuple[bool, bool] | None:
    """Whether the plan for one random cluster is the cheapest that there is, and whether it is no worse than that of
    single pods; None = none is needed, or possible."""
    chosen = random.Random(seed)
    n_nodes, n_members = chosen.randrange(2, 4), chosen.randrange(2, 4)
    there: list[PodInfo] = []
    for row in range(n_nodes):
        left = 4.0
        while left > 0 and len(there) < 8:
            cpu = min(left, chosen.choice((0.5, 1.0, 1.5, 2.0, 3.0)))
            priority, app = chosen.choice((0, 0, 1, 5, 20)), chosen.choice("abc")
            one = low(
                f"low-{len(there)}", f"n{row}", cpu=cpu, priority=priority, started=chosen.uniform(1e5, 5e5),
                labels={"app": app},
            )  # fmt: skip
            there.append(of_gang(one, "other") if chosen.random() < 0.3 else one)
            left -= cpu
    members = high(n_members, cpu=chosen.choice((0.5, 1.0, 1.5, 2.0, 3.0)))
    groups = [gang("high", n_members), gang("other", chosen.randrange(1, 4))]
    budgets = [budget("a", allowed=chosen.randrange(2), app="a")]
    world = GangWorld(nodes_of(n_nodes), [*there, *members], groups, budgets)
    best = least_cost(world, members)
    if world.run(*members).placed:
        assert best is not None and best.n_victims == 0
        return None
    assert (best is not None) == bool(world.nominations), f"seed {seed}"
    if best is None:
        return None
    found = world.cost(world.victims)
    assert found >= best and len(world.victims) == len(set(world.victims))
    return found == best, _is_no_worse_than_single_pods(world, members)


def _is_no_worse_than_single_pods(world: GangWorld, members: Sequence[PodInfo]) -> bool:
    """One after the other they evict as many at least, or dearer ones."""
    pods = list(world.cluster.state.pods.values())
    alone = GangWorld([one for one in world.cluster.state.nodes if one is not None], pods, (), ())
    alone.gangs.replace_groups([gang("other", world.gangs.minimum("shop/other"))])
    alone.budgets.replace([one for one in world.budgets._budgets if one is not None])
    alone.run(*members, group="")
    gone = [alone.cluster.state.pods[name] for name in dict.fromkeys(alone.victims)]
    if others_of_broken_gangs(gone, alone.gangs):
        return True  # one after the other they break a gang, and leave what is left of it
    if len(alone.nominations) + len(alone.cluster.assumed.uids()) < len(members):
        return True
    return len(world.victims) <= len(gone) or world.cost(world.victims) < world.cost([one.uid for one in gone])


@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(150, 3000), marks=pytest.mark.long)])
def test_plans_beside_every_possible_one(seeds: range) -> None:
    judged = [one for seed in seeds if (one := _judged(seed)) is not None]
    best, no_worse = (sum(column) for column in zip(*judged, strict=True))
    print(f"of {len(judged)} plans {best} are the cheapest, {no_worse} no worse than that of single pods")
    assert len(judged) > len(seeds) / 2
    assert best > 0.85 * len(judged) and no_worse >= 0.99 * len(judged)


_CACHE = PodAffinityTerm(
    LabelSelector((Requirement("app", Operator.IN, ("cache",)),)), "kubernetes.io/os", frozenset({"shop"})
)


def _nodes() -> list[NodeInfo]:
    return [replace(node(f"n{i}", cpu=2.0), labels={"host": f"n{i}", "kubernetes.io/os": "linux"}) for i in range(2)]


def test_a_pod_that_a_member_with_free_room_needs_stays() -> None:
    near = of_gang(pod("high-0", cpu=1.0, priority=10, constraints=PodConstraints(affinity=(_CACHE,))), "high")
    plain = of_gang(pod("high-1", cpu=2.0, priority=10), "high")
    there = [low("cache", "n1", cpu=2.0, priority=0, labels={"app": "cache"}), low("top", "n0", cpu=1.0, priority=10)]
    world = GangWorld(_nodes(), [*there, near, plain], [gang("high", 2)])
    world.run(near, plain)
    assert "cache" not in world.victims
