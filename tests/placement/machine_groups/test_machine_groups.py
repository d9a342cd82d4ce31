"""Whose machines a pod may use: the filter and the preference, on tables and through the placing of a cycle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from base.errors import InputError
from forecast.service_key import Owner
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.machine_groups.borrowers import GroupCollector
from placement.machine_groups.machine_group import MachineGroup
from placement.node_rule_settings import Borrow, GroupOwner, MachineGroupOptions, NodeRuleOptions
from placement.policies.filter_choice import FilterOptions, chosen_filters
from testing.placement.views import PASSES, Verdict, passing, verdicts
from tests.placement.machine_groups.group_world import BORROW, KEY, GroupWorld, group_node, of_team

RESERVED = Verdict.no("node(s) belonged to a machine group that the pod does not name")
NOT_OWNER = Verdict.no("node(s) belonged to a machine group that the pod names and is not an owner of")
TOO_IMPORTANT = Verdict.no("node(s) belonged to a machine group that lends only to pods of a lower priority")
ELSEWHERE = Verdict.no("node(s) belonged to no machine group, the pod names one")
KEPT = Verdict.no("node(s) belonged to a machine group that keeps what it has left for its owners")

SEARCH = GroupOwner(namespaces=("search",))
NODES = [group_node("plain"), group_node("ours", "search"), group_node("ads", "ads"), group_node("open", "open")]
GROUPS = (
    MachineGroupOptions(name="search", owners=(SEARCH,)),
    MachineGroupOptions(name="ads", owners=(GroupOwner(namespaces=("ads", "bids"), labels={"team": "ads"}),)),
)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(of_team("p", "search"), [PASSES, RESERVED, RESERVED, RESERVED], id="an owner names none"),
        pytest.param(of_team("p", "search", "search"), [ELSEWHERE, PASSES, RESERVED, RESERVED], id="an owner"),
        pytest.param(of_team("p", "shop", "search"), [ELSEWHERE, NOT_OWNER, RESERVED, RESERVED], id="no owner"),
        pytest.param(
            of_team("p", "bids", "ads", labels={"team": "ads"}),
            [ELSEWHERE, RESERVED, PASSES, RESERVED],
            id="namespace and label",
        ),
        pytest.param(
            of_team("p", "shop", "search", owner=Owner("DaemonSet", "agent")), [PASSES] * 4, id="of a DaemonSet"
        ),
        pytest.param(of_team("p", "shop", borrows=True), [PASSES, RESERVED, RESERVED, RESERVED], id="nothing is lent"),
    ],
)
def test_only_owners_may_name_a_group(pod: PodInfo, expected: list[Verdict]) -> None:
    world = GroupWorld(NODES, (), *GROUPS)
    assert list(verdicts(world.filter, pod, world.view).values()) == expected
    options = FilterOptions(rules=NodeRuleOptions(machine_groups=GROUPS))
    (made,) = (one for one in chosen_filters(options) if one.name == "MachineGroup")
    assert list(verdicts(made, pod, world.view).values()) == expected


def test_owners_that_may_leave_go_to_their_own_first() -> None:
    nodes = [group_node("plain", cpu=4.0), group_node("ours", "search", cpu=4.0)]
    for only, expected in ((True, {"ours": 4}), (False, {"ours": 4, "plain": 4})):
        world = GroupWorld(nodes, (), MachineGroupOptions(name="search", owners=(SEARCH,), only=only))
        placed = world.place([of_team(f"p-{i}", "search", "search", cpu=1.0) for i in range(10)])
        assert Counter(placed) == expected and placed[:4] == ["ours"] * 4


def test_pods_of_owners_may_belong_without_saying_so() -> None:
    world = GroupWorld(NODES, (), MachineGroupOptions(name="search", owners=(SEARCH,), implied=True), GROUPS[1])
    assert passing(world.filter, of_team("p", "search"), world.view) == {"ours"}
    assert passing(world.filter, of_team("p", "search", "open"), world.view) == {"open"}
    assert passing(world.filter, of_team("p", "shop"), world.view) == {"plain"}


# Borrowing


def lends(keep_free: float = 0.0, below: int = 0) -> MachineGroupOptions:
    return MachineGroupOptions(
        name="search", owners=(SEARCH,), borrow=Borrow.IDLE, borrow_below=below, keep_free=keep_free
    )


def borrower(name: str, *, priority: int = -1, **more: object) -> PodInfo:
    return of_team(name, "shop", borrows=True, priority=priority, **more)  # type: ignore[arg-type]


def test_who_may_borrow() -> None:
    world = GroupWorld(NODES, (), lends(below=5), GROUPS[1])
    assert list(verdicts(world.filter, borrower("p", priority=4), world.view).values())[:3] == [
        PASSES,
        PASSES,
        RESERVED,
    ]
    assert verdicts(world.filter, borrower("p", priority=5), world.view)["ours"] == TOO_IMPORTANT
    assert verdicts(world.filter, of_team("p", "shop", priority=4), world.view)["ours"] == RESERVED
    refuses = replace(borrower("p"), annotations={BORROW: "false"})
    assert verdicts(world.filter, refuses, world.view)["ours"] == RESERVED
    confined = replace(borrower("p"), annotations={BORROW: "true", KEY: "open"})
    assert verdicts(world.filter, confined, world.view)["ours"] == RESERVED


def test_borrowed_machines_come_last_of_all() -> None:
    nodes = [group_node("ours", "search", cpu=4.0), group_node("plain", cpu=4.0)]
    world = GroupWorld(nodes, (), lends())
    assert world.place([borrower(f"p-{i}", cpu=1.0) for i in range(10)]) == ["plain"] * 4 + ["ours"] * 4


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(("keep_free", "expected"), [(0.0, 10), (0.1, 9), (0.25, 7), (1.0, 0)])
def test_a_share_is_kept_for_the_owners(keep_free: float, expected: int, one_by_one: bool) -> None:
    """Of ten cores on two machines."""
    nodes = [group_node("a", "search", cpu=6.0), group_node("b", "search", cpu=4.0)]
    world = GroupWorld(nodes, (), lends(keep_free))
    pods = [borrower(f"p-{i}", cpu=1.0) for i in range(12)]
    assert len(world.place(pods, one_by_one=one_by_one)) == expected
    if keep_free:
        assert verdicts(world.filter, borrower("q", cpu=1.0), world.view) == {"a": KEPT, "b": KEPT}


def test_cards_are_counted_by_thousandths_and_so_is_what_the_owners_have() -> None:
    nodes = [group_node("a", "search", n=4), group_node("b", "search", n=4)]
    world = GroupWorld(nodes, (), lends(0.5))
    assert len(world.place([of_team(f"own-{i}", "search", "search", n=1) for i in range(2)])) == 2
    world.place([of_team("share", "search", "search", milli=500)])
    assert len(world.place([borrower(f"p-{i}", milli=500) for i in range(9)])) == 3
    assert not world.place([borrower("whole", n=1)])
    assert len(world.place([borrower("no-card", cpu=1.0)])) == 1  # the cores of the group are idle


def test_nothing_is_lent_while_owners_wait_for_ten_minutes_at_most() -> None:
    world = GroupWorld([group_node("a", "search", cpu=4.0), group_node("plain")], (), lends())
    waits = of_team("w", "search", "search", cpu=1.0, created=world.now)
    world.put(waits)
    assert verdicts(world.filter, borrower("p"), world.view)["a"] == KEPT
    world.now += 599
    assert world.use.is_wanted("search")
    world.now += 1
    assert verdicts(world.filter, borrower("p"), world.view)["a"] == PASSES
    world.now -= 600
    for change, wanted in (
        (replace(waits, gates=("wait",)), False),
        (waits, True),
        (replace(waits, node="a"), False),
    ):
        world.put(change)
        assert world.use.is_wanted("search") is wanted
    world.put(of_team("other", "shop", "search", created=world.now))
    assert not world.use.is_wanted("search")  # it names the group, and is not an owner


def test_who_borrows_is_told_when_owners_wait_no_more() -> None:
    world, told = GroupWorld([group_node("a", "search", cpu=4.0)], (), lends()), list[bool]()
    world.use.on_change.append(lambda: told.append(world.use.is_wanted("search")))
    first, second = (of_team(name, "search", "search", cpu=1.0, created=world.now) for name in ("v", "w"))
    world.put(first)
    world.put(second)
    world.cluster.delete_pod(first.uid)
    assert told == []  # another waits
    world.cluster.delete_pod(second.uid)
    assert told == [False]
    world.put(first)
    world.use.look()
    assert told == [False]
    world.now += 600
    world.use.look()
    assert told == [False, False]
    for change in (replace(first, priority=5), first):  # it has waited too long already
        world.put(change)
        world.use.look()
    world.cluster.delete_pod(first.uid)
    assert told == [False, False]
    world.put(replace(second, created=world.now))
    world.place([replace(second, created=world.now)])
    assert told == [False, False, False]


# Who is told


def test_hints() -> None:
    node, pod = group_node("a", "search"), of_team("x", "search", "search", node="a")
    one = MachineGroup()
    cases = [
        (ClusterEvent(EventKind.NODE_ADDED, node=node), True, True),
        (ClusterEvent(EventKind.NODE_CHANGED, node=node, before=group_node("a")), True, True),
        (ClusterEvent(EventKind.NODE_CHANGED, node=node, before=node), False, True),
        (ClusterEvent(EventKind.POD_LEFT, pod=pod), False, True),
        (ClusterEvent(EventKind.POD_BOUND, pod=pod), False, True),
        (ClusterEvent(EventKind.FORECAST_CHANGED), False, True),  # GroupUse.on_change
    ]
    for event, anybody, who_borrows in cases:
        assert (one.hint(of_team("p", "shop"), event) is Hint.QUEUE) == anybody
        assert (one.hint(borrower("p"), event) is Hint.QUEUE) == who_borrows
        assert event.kind in one.woken_by
    assert EventKind.NAMESPACE_CHANGED not in one.woken_by


# What is told


def test_what_is_lent_is_shown() -> None:
    world = GroupWorld([group_node("a", "search", n=8), group_node("plain", n=1)], (), lends(), GROUPS[1])
    world.place([borrower("p", n=2, cpu=3.0), borrower("q", n=2, cpu=1.0)])
    world.place([borrower("elsewhere", n=1)])
    world.place([of_team("own", "search", "search", borrows=True, n=1)])
    world.put(of_team("w", "search", "search", n=8, created=world.now))
    found = {
        (sample.name.removeprefix("forecast_gpu_group_"), sample.labels["group"]): sample.value
        for family in GroupCollector(world.use).collect()
        for sample in family.samples
    }
    assert found == {
        ("borrowing_pods", "search"): 2,
        ("borrowed_thousandths", "search"): 4000,
        ("borrowed_cpu_cores", "search"): 4,
        ("waiting_owner_pods", "search"): 1,
    }
    before = world.use.lent()
    world.use.rebuild()
    assert world.use.lent() == before
    world.cluster.delete_pod("shop/p")
    assert world.use.lent()["search"].pods == 1


# Options


def test_options_that_cannot_be() -> None:
    for wrong, word in (
        (lambda: GroupOwner(), "neither namespaces nor labels"),
        (lambda: GroupOwner(labels={"job-name": "x"}), "job-name"),
        (lambda: MachineGroupOptions(name=""), "cannot name"),
        (lambda: MachineGroupOptions(name="a,b"), "cannot name"),
        (lambda: MachineGroupOptions(name="a", keep_free=1.5), "keep_free"),
        (lambda: MachineGroupOptions(name="a", implied=True), "no owners"),
        (
            lambda: NodeRuleOptions(machine_groups=(MachineGroupOptions(name="a"), MachineGroupOptions(name="a"))),
            "twice",
        ),
    ):
        with pytest.raises(InputError, match=word):
            wrong()
