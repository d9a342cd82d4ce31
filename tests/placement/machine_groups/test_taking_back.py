"""What was lent comes back by preemption: the filter stands in nobody's way."""

from __future__ import annotations

from dataclasses import replace

from kube.objects.constraints import LabelSelector, Operator, PodAffinityTerm, PodConstraints, Requirement
from kube.objects.objects import NodeInfo, PodInfo
from placement.machine_groups.machine_group import MachineGroup
from placement.machine_groups.membership import Membership
from placement.node_rule_settings import Borrow, GroupOwner, MachineGroupOptions
from tests.scheduler.preemption.made_up import World, node, pod

KEY, BORROW = "forecast-scheduler.io/machine-group", "forecast-scheduler.io/borrow"
GROUP = MachineGroupOptions(
    name="search", owners=(GroupOwner(labels={"team": "search"}),), borrow=Borrow.IDLE, keep_free=0.25
)


def of_group(name: str) -> NodeInfo:
    return replace(node(name), labels={KEY: "search", "host": name})


def owner(name: str, on: str = "", *, priority: int = 0, cpu: float = 4.0, **fields: object) -> PodInfo:
    made = pod(name, on, cpu=cpu, priority=priority, labels={"team": "search"}, **fields)  # type: ignore[arg-type]
    return replace(made, annotations={KEY: "search"})


def borrower(name: str, on: str, *, cpu: float = 2.0, priority: int = -5) -> PodInfo:
    return replace(pod(name, on, cpu=cpu, priority=priority), annotations={BORROW: "true"})


def world(*pods: PodInfo) -> World:
    groups = MachineGroup(Membership((GROUP,)))
    return World([node("plain"), of_group("a"), of_group("b")], pods, further_filters=[groups])


def test_owners_drive_borrowers_away_and_nobody_else() -> None:
    made = world(
        pod("elsewhere", "plain", cpu=4.0, priority=-100),
        borrower("lent-1", "a"),
        borrower("lent-2", "a"),
        owner("own", "b"),
    )
    assert made.preempts(owner("x")) == ("a", ["lent-1", "lent-2"])
    assert made.preempts(owner("small", cpu=2.0)) == ("a", ["lent-2"])


def test_the_same_where_more_than_requests_is_in_the_way() -> None:
    apart = PodAffinityTerm(
        LabelSelector((Requirement("team", Operator.IN, ("search",)),)), "host", frozenset({"shop"}), None
    )
    made = world(owner("own", "b", cpu=1.0), borrower("lent", "a", cpu=4.0))
    assert made.preempts(owner("x", constraints=PodConstraints(anti_affinity=(apart,)))) == ("a", ["lent"])


def test_who_borrows_drives_nobody_away_for_what_is_kept() -> None:
    made = world(pod("full", "plain", cpu=4.0, priority=0), borrower("lent", "a", cpu=4.0, priority=-100))
    assert made.feasible(borrower("x", "", cpu=2.0)) == {"b"}
    made.put(borrower("more", "b", cpu=2.0, priority=-100))
    assert made.feasible(borrower("x", "", cpu=1.0)) == set()  # 2 of 8 cores are kept
    assert made.preempts(borrower("x", "", cpu=1.0)) is None
