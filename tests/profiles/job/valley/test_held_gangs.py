"""Members of a PodGroup are planned, held and let go as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kube.objects.objects import PodInfo, PodPhase
from placement.pod_groups.group_of_pod import GROUP_LABEL
from tests.profiles.job.valley.waiting_pods import Waiting, job_pod
from tests.scorer.live_cluster import at


def member(name: str, *, group: str = "train", **said: Any) -> PodInfo:
    pod = job_pod(name, created=at(19), **said)
    return replace(pod, labels={**pod.labels, GROUP_LABEL: group})


def members(n: int = 8, **said: Any) -> list[PodInfo]:
    """Of no two the same."""
    return [member(f"m{k}", cpu=1.0 + k, run=f"{20 + 30 * k}m", latest_start=f"{8 + k}h", **said) for k in range(n)]


def starts(waiting: Waiting) -> set[float]:
    return {one.start for one in waiting.planner.planned()}


def test_all_have_one_start_and_go_together() -> None:
    waiting = Waiting(19.0)
    waiting.put(*members())
    waiting.planner.keep_up()
    (start,) = starts(waiting)
    assert len(waiting.planner.planned()) == 8
    assert at(21) < start <= at(27) - 60  # the first is due 8 hours after it was made
    waiting.later(start - at(19) - 10)
    assert waiting.popped() == []
    waiting.later(11)
    popped = waiting.queue.pop(most=1, wait_seconds=0.0)
    assert popped is not None and len(popped.pods) == 8


def test_one_that_may_not_wait_takes_the_others_along() -> None:
    for hasty in (member("hasty"), member("hasty", latest_start="30s")):
        waiting = Waiting(19.0)
        waiting.put(*members(3))
        waiting.planner.keep_up()
        assert waiting.gated() == 3
        waiting.put(hasty)
        popped = waiting.queue.pop(most=1, wait_seconds=0.0)
        assert popped is not None and len(popped.pods) == 4
        waiting.planner.plan()
        assert {one.start for one in waiting.gate.plan.values()} == {at(19)}
        assert starts(waiting) == set(), "they are not held any more"


def test_one_that_comes_after_the_others_went_is_not_held_while_one_of_them_is_there() -> None:
    waiting = Waiting(19.0)
    first = member("first")
    waiting.put(first)
    assert waiting.popped() == ["first"]
    bound = replace(first, node="node-1", phase=PodPhase.RUNNING)
    waiting.live.put(bound)
    waiting.planner.plan()
    waiting.put(member("again", latest_start="12h"))
    assert waiting.popped() == ["again"]
    waiting.live.put(replace(bound, phase=PodPhase.SUCCEEDED))
    waiting.live.delete(member("again"))
    waiting.queue.remove("uid-again")
    waiting.planner.plan()
    waiting.put(member("next", latest_start="12h"))
    assert waiting.popped() == []


def test_a_member_that_is_made_anew_joins_those_that_sit_also_after_a_restart() -> None:
    waiting = Waiting(19.0)
    waiting.live.put(replace(member("first"), node="node-1", phase=PodPhase.RUNNING))
    waiting.put(member("again", latest_start="12h"), member("other", group="other", latest_start="12h"))
    waiting.planner.plan()
    assert waiting.popped() == ["again"]
    assert waiting.gated() == 1


def test_a_plan_that_comes_too_late_does_not_tear_them_apart() -> None:
    waiting = Waiting(19.0, first_wait=5.0)
    waiting.put(*members(4))
    waiting.later(6)
    assert waiting.queue.lengths()["active"] == 4
    waiting.planner.plan()
    assert waiting.queue.lengths()["active"] == 4
