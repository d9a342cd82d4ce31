"""The search against the plain one, and what must hold of whatever it finds."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kube.objects.constraints import (
    UNCONSTRAINED,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    Requirement,
)
from kube.objects.objects import NodeInfo, PodInfo
from kube.tables.columns import request_units
from kube.tables.self_check import self_check
from placement.plugins import Nomination
from placement.pod_importance import LEAST_STANDING, Standing, importance, priority_of
from scheduler.preemption.cumulated_room import CumulatedByPriority
from scheduler.preemption.options import PreemptionOptions
from scheduler.preemption.sitting_pods import NONE, SEVERAL
from tests.scheduler.preemption.made_up import MadeUpGangs, World, budget, node, pod
from tests.scheduler.preemption.plain_search import candidates, passing

UNPROTECTED = PreemptionOptions(protect_started=0.0)
APPS = ("a", "b", "c")
APART = PodConstraints(
    anti_affinity=(
        PodAffinityTerm(LabelSelector((Requirement("app", Operator.IN, ("a",)),)), "host", frozenset({"shop"})),
    )
)
NEAR = PodConstraints(
    affinity=(PodAffinityTerm(LabelSelector((Requirement("app", Operator.IN, ("b",)),)), "host", frozenset({"shop"})),)
)

_Node = tuple[float, float, float]  # cores, bytes, pods
_Sitting = tuple[int, float, float, int, float | None, str, tuple[int, ...], PodConstraints, bool]
_Preemptor = tuple[float, float, int, tuple[int, ...], PodConstraints]

nodes = st.lists(
    st.tuples(
        st.sampled_from((2.0, 3.0, 4.0)),
        st.sampled_from((3.0, 5.0)),
        st.sampled_from((3.0, 5.0, 110.0)),
    ),
    min_size=1,
    max_size=4,
)
sitting = st.lists(
    st.tuples(
        st.integers(0, 3),  # node
        st.sampled_from((0.0, 0.5, 1.0, 1.0, 2.0)),
        st.sampled_from((0.0, 1.0, 2.0)),
        st.sampled_from((-5, 0, 0, 7, 100)),
        st.sampled_from((None, 1.0, 2.0, 3.0)),
        st.sampled_from(APPS),
        st.sampled_from(((), (), (), (80,), (80, 81))),
        st.sampled_from((UNCONSTRAINED, UNCONSTRAINED, UNCONSTRAINED, APART)),
        st.booleans(),
    ),
    min_size=4,
    max_size=18,
)
preemptors = st.tuples(
    st.sampled_from((1.0, 2.0, 3.0, 4.0)),
    st.sampled_from((0.0, 1.0, 4.0)),
    st.sampled_from((5, 7, 50, 1000)),
    st.sampled_from(((), (), (80,))),
    st.sampled_from((UNCONSTRAINED, UNCONSTRAINED, APART, NEAR)),
)
budgets = st.lists(st.tuples(st.sampled_from(APPS), st.integers(-1, 2), st.integers(0, 14)), max_size=3)


def cluster(of_nodes: Sequence[_Node], of_pods: Sequence[_Sitting]) -> tuple[list[NodeInfo], list[PodInfo]]:
    made = [node(f"n{i}", cpu=cpu, memory=memory, pods=pods) for i, (cpu, memory, pods) in enumerate(of_nodes)]
    there = []
    for i, (on, cpu, memory, priority, started, app, ports, constraints, terminating) in enumerate(of_pods):
        there.append(
            pod(
                f"p{i}",
                f"n{on % len(made)}",
                cpu=cpu,
                memory=memory,
                priority=priority,
                started=started,
                labels={"app": app},
                ports=ports,
                terminating=terminating,
                constraints=constraints,
            )
        )
    return made, there


def preemptor(of: _Preemptor) -> PodInfo:
    cpu, memory, priority, ports, constraints = of
    return pod(
        "x", cpu=cpu, memory=memory, priority=priority, ports=ports, labels={"app": "b"}, constraints=constraints
    )


def c_before_all_others(one: PodInfo) -> int:
    return LEAST_STANDING if one.labels.get("app") == "c" else one.priority


@given(nodes, sitting, preemptors, budgets, st.sampled_from((priority_of, c_before_all_others)))
def test_the_same_node_and_victims_as_looking_at_each_pod_of_each_node(
    of_nodes: Sequence[_Node],
    of_pods: Sequence[_Sitting],
    of: _Preemptor,
    of_budgets: Sequence[tuple[str, int, int]],
    standing: Standing,
) -> None:
    made, there = cluster(of_nodes, of_pods)
    x = preemptor(of)
    if passing(x, made, there)[0]:
        return
    named = [
        budget(f"b{i}", allowed=allowed, disrupted=(f"p{disrupted}",), app=app)
        for i, (app, allowed, disrupted) in enumerate(of_budgets)
    ]
    world = World(made, there, named, options=UNPROTECTED, standing_of=standing)
    found = candidates(x, made, there, named, standing)
    assert world.preempts(x) == ((found[0].node, list(found[0].victims)) if found else None)
    assert self_check(world.view.state) == ()
    assert world.feasible(x) == set()  # the tables are as they were
    # Once they are gone it fits, and none of them could have stayed.
    answer = world.asked(x)
    if isinstance(answer, Nomination):
        assert all(victim.priority < x.priority and victim.node == answer.node for victim in answer.victims)
        for victim in answer.victims:
            world.delete(victim.uid)
        assert answer.node in world.feasible(x)
        for victim in answer.victims:
            world.put(victim)
            assert x.constraints is NEAR or answer.node not in world.feasible(x)
            world.delete(victim.uid)


NAMES = st.integers(0, 11).map(lambda i: f"p{i}")
NODES = st.sampled_from(("a", "b", "c", "unknown"))


class Following(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World([node(name) for name in "abc"], [], gangs=MadeUpGangs({}))
        self.cumulated = CumulatedByPriority(self.world.sitting)

    @rule(
        name=NAMES,
        on=NODES,
        priority=st.sampled_from((-1, 0, 5)),
        started=st.sampled_from((None, 1.0, 2.0)),
        cpu=st.sampled_from((0.0, 1.0, 2.5)),
        app=st.sampled_from(("a", "b")),
        gang=st.sampled_from(("", "g", "h")),
    )
    def put(self, name: str, on: str, priority: int, started: float | None, cpu: float, app: str, gang: str) -> None:
        labels = {"app": app} | ({"gang": gang} if gang else {})
        self.world.put(pod(name, on, priority=priority, started=started, cpu=cpu, labels=labels))

    @rule(name=NAMES)
    def unbind(self, name: str) -> None:
        self.world.put(pod(name))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.world.delete(name)

    @rule(name=st.sampled_from(("a", "c")))
    def delete_node(self, name: str) -> None:
        self.world.view.cluster.apply(self.world.view.state.delete_node(name))

    @rule(name=st.sampled_from(("a", "c")))
    def put_node(self, name: str) -> None:
        self.world.view.cluster.apply(self.world.view.state.put_node(node(name)))

    @rule(number=st.integers(0, 2), app=st.sampled_from(("a", "b")))
    def put_budget(self, number: int, app: str) -> None:
        self.world.budgets.put(budget(f"b{number}", allowed=1, app=app))

    @rule(number=st.integers(0, 2))
    def delete_budget(self, number: int) -> None:
        self.world.budgets.delete(budget(f"b{number}", allowed=1))

    @rule(most=st.integers(0, 3))
    def settle_a_little(self, most: int) -> None:
        self.world.sitting.settle(most)

    @rule()
    def rebuild(self) -> None:
        self.world.sitting.rebuild()
        self.cumulated = CumulatedByPriority(self.world.sitting)

    @rule(threshold=st.sampled_from((0, 6)), spared=st.sets(NAMES))
    def search(self, threshold: int, spared: set[str]) -> None:
        sitting = self.world.sitting
        sitting.settle()
        n = sitting.n_slots
        may_go = (sitting.row[:n] >= 0) & (sitting.priority[:n] < threshold)
        may_go[sitting.slots_of(spared)] = False
        cumulated = self.cumulated.of(threshold, may_go)
        for row in range(self.world.view.n_rows):
            going = [p for p in sitting.on(row) if p.priority < threshold and p.uid not in spared]
            if row < len(cumulated.may_go):
                assert cumulated.may_go[row].sum() == len(going)
                assert cumulated.gone("")[row, -1] == len(going)
                total = sum(request_units("cpu", p.requests.get("cpu", 0.0)) for p in going)
                assert cumulated.gone("cpu")[row, -1] == total

    @rule()
    def compare(self) -> None:
        sitting, state = self.world.sitting, self.world.view.state
        sitting.settle()
        for row in range(state.n_rows):
            there = [state.pods[uid] for uid, seat in state.seat_of.items() if seat.node == row]
            assert sitting.on(row) == sorted(there, key=importance)
        assert sitting.slot_of.keys() == state.seat_of.keys()
        members: dict[str, int] = {}
        for uid, slot in sitting.slot_of.items():
            one = state.pods[uid]
            numbers = self.world.budgets.numbers_of(one)
            assert sitting.budget[slot] == (SEVERAL if len(numbers) > 1 else numbers[0] if numbers else NONE)
            assert sitting.units("cpu")[slot] == request_units("cpu", one.requests.get("cpu", 0.0))
            gang = one.labels.get("gang")
            number = int(sitting.gang[slot])
            assert (number == NONE) == (gang is None) and (gang is None or members.setdefault(gang, number) == number)
        assert len(set(members.values())) == len(members)

    @invariant()
    def nothing_grows_without_pods(self) -> None:
        assert len(self.world.sitting._noted) <= 12 + 12  # pods that sit, and slots of those that went


Following.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestFollowing = Following.TestCase
