"""Members of one gang are always one replica's, whatever each of them says."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cluster.assuming_cluster import AssumingCluster
from kube.objects.constraints import PodConstraints
from kube.objects.objects import PodInfo
from placement.pod_groups.group_of_pod import GROUP_LABEL
from scheduler.queue.queued_pods import UnitOf
from scheduler.shards.assignment import dispatcher
from scheduler.shards.passing_on import PASSED_ON, PassedOn
from scheduler.shards.responsibility import Responsibility, WholeGangs
from scorer.options import ScorerOptions
from tests.scheduler.binding.made_up import pod_info

NOTHING = PassedOn()
SELECTED = PodConstraints(node_selector=(("disk", "fast"),))


class World:
    def __init__(self) -> None:
        self.cluster, self.n_changed = AssumingCluster(ScorerOptions(), now=0.0), 0
        self.gangs = WholeGangs(self.cluster, self._note)
        self.cluster.listeners.append(self.gangs.apply)
        self.responsibility = Responsibility(
            self.cluster,
            "a",
            passes=1,
            shard_of=lambda node: -1,
            unit_of=lambda pod: UnitOf("default/gang", None, True),
            reason=lambda pod: "",
            gangs=self.gangs,
        )
        self.responsibility.use(dispatcher({0: "a", 1: "b", 2: "c"}, {}))

    def put(self, name: str, said: PassedOn = NOTHING, constraints: PodConstraints | None = None) -> PodInfo:
        made = replace(pod_info(name), labels={GROUP_LABEL: "gang"}, annotations={PASSED_ON: said.text})
        made = made if constraints is None else replace(made, constraints=constraints)
        self.cluster.put_pod(made)
        return self.cluster.state.pods[made.uid]

    def holders(self) -> set[str | None]:
        return {self.responsibility.holder(pod) for pod in self.cluster.state.pods.values()}

    def _note(self) -> None:
        self.n_changed += 1


@given(said=st.lists(st.builds(PassedOn, st.integers(0, 3), st.integers(-1, 2)), min_size=1, max_size=6))
def test_members_that_say_different_things_are_one_replicas(said: list[PassedOn]) -> None:
    world = World()
    for number, one in enumerate(said):
        world.put(f"member-{number}", one)
        assert len(world.holders()) == 1


def test_a_gang_follows_the_member_that_was_passed_on_first_and_goes_back_without_it() -> None:
    world = World()
    first, _ = world.put("first"), world.put("second")
    (before,) = world.holders()
    world.put("first", PassedOn(1))
    assert world.n_changed == 1
    (after,) = world.holders()
    assert after not in (before, None)
    world.cluster.delete_pod(first.uid)
    assert world.holders() == {before} and world.n_changed == 2


def test_a_gang_whose_members_have_different_rules_is_the_leaders() -> None:
    world = World()
    world.put("driver")
    worker = world.put("worker", constraints=SELECTED)
    assert world.holders() == {None} and world.responsibility.needs_one_decider(worker)
    world.put("driver", constraints=SELECTED)
    assert None not in world.holders() and len(world.holders()) == 1


def test_what_is_made_anew_is_as_what_was_followed() -> None:
    world = World()
    world.put("one", PassedOn(1))
    world.put("two", constraints=SELECTED)
    anew = WholeGangs(world.cluster)
    anew.rebuild()
    for pod in world.cluster.state.pods.values():
        assert anew.passed_on(pod) == world.gangs.passed_on(pod) == PassedOn(1)
        assert anew.is_mixed(pod) and world.gangs.is_mixed(pod)
