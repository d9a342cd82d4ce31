"""The search against the plain one, and what must hold of whatever it finds."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cluster.tables.self_check import self_check
from kube.objects.constraints import (
    UNCONSTRAINED,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    Requirement,
)
from kube.objects.objects import NodeInfo, PodInfo
from placement.plugins import Nomination
from placement.pod_importance import LEAST_STANDING, Standing, priority_of
from scheduler.loop_settings import PreemptionOptions
from testing.constants import with_constants
from tests.scheduler.preemption.made_up import World, budget, node, pod
from tests.scheduler.preemption.plain_search import candidates, passing

UNPROTECTED = with_constants(PreemptionOptions(), protect_started=0.0)
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
