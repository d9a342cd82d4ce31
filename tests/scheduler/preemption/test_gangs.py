"""Gangs are evicted whole or not at all, and cost what all of their members cost."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import PodInfo
from placement.plugins import Nomination
from scheduler.loop_settings import PreemptionOptions
from tests.scheduler.preemption.made_up import NOW, MadeUpGangs, World, node, pod


def member(
    name: str, on: str, gang: str = "g", *, cpu: float = 2.0, priority: int = 0, started: float = 5e5
) -> PodInfo:
    return pod(name, on, cpu=cpu, priority=priority, started=started, labels={"gang": gang})


def world(pods: Sequence[PodInfo], minimum: int, **more: object) -> World:
    nodes = [node(name) for name in sorted({one.node for one in pods})]
    return World(nodes, pods, gangs=MadeUpGangs({"g": minimum, "h": minimum}), **more)  # type: ignore[arg-type]


def test_a_node_is_not_passed_over_for_a_victim_that_a_lost_gang_makes_needless() -> None:
    # On a first look p would go with g2; as g1 goes with g2, p can stay, and nobody above 2 goes.
    there = [
        pod("p", "a", cpu=2, priority=9),
        member("g1", "a", priority=2, cpu=1),
        member("g2", "a", priority=1, cpu=1),
        pod("q", "b", cpu=4, priority=5),
    ]
    assert world(there, 2).preempts(pod("x", cpu=2, priority=10)) == ("a", ["g1", "g2"])


pods = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from((0.5, 1.0, 2.0)),
        st.sampled_from((0, 3, 7, 20)),
        st.sampled_from(("", "", "g", "h")),
        st.sampled_from((1.0, 2.0, NOW)),
        st.sampled_from(((), (), (80,))),
    ),
    min_size=4,
    max_size=20,
)


@given(pods, st.integers(1, 3), st.sampled_from((1.0, 2.0, 4.0)), st.sampled_from(((), (80,))))
def test_no_gang_is_ever_left_broken_and_nobody_important_goes(
    of_pods: Sequence[tuple[int, float, int, str, float, tuple[int, ...]]],
    minimum: int,
    cpu: float,
    ports: tuple[int, ...],
) -> None:
    there = [
        pod(
            f"p{i}", f"n{on}", cpu=cpu, priority=priority, started=start, labels={"gang": gang} if gang else {}, ports=p
        )
        for i, (on, cpu, priority, gang, start, p) in enumerate(of_pods)
    ]
    gangs = MadeUpGangs({"g": minimum, "h": minimum})
    made = World([node(f"n{i}", cpu=2) for i in range(4)], there, gangs=gangs, options=PreemptionOptions())
    x = pod("x", cpu=cpu, priority=7, ports=ports)
    if made.feasible(x):
        return
    answer = made.asked(x)
    if not isinstance(answer, Nomination):
        return
    uids = {victim.uid for victim in answer.victims}
    assert len(uids) == len(answer.victims) > 0
    assert all(victim.priority < 7 and victim.started != NOW for victim in answer.victims)
    for gang in ("g", "h"):
        members = [one for one in there if one.labels.get("gang") == gang]
        left = [one for one in members if one.uid not in uids]
        assert len(left) == len(members) or not left or len(left) >= minimum
    for uid in uids:
        made.delete(uid)
    assert answer.node in made.feasible(x)
