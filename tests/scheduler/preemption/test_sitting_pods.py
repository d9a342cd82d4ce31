"""The arrays follow the tables, whatever happens and however often somebody looks."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cluster.tables.columns import request_units
from placement.pod_importance import importance
from scheduler.preemption.releasable_room import CumulatedByPriority
from scheduler.preemption.sitting_pods import NONE, SEVERAL
from tests.scheduler.preemption.made_up import MadeUpGangs, World, budget, node, pod

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
