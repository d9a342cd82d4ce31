"""What Reserve plugins hold for a member of a gang counts when the next member is placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from kube.objects.constraints import PodVolume
from kube.objects.objects import PodInfo
from placement.status import SUCCESS, Code, Status
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.placing import Placed
from scheduler.queue.queued import Popped, QueuedPod
from tests.scheduler.binding.made_up import pod_info


@dataclass
class Told:
    """A Reserve plugin, and a placer that puts everything on the first node."""

    name: str = "Told"
    calls: list[str] = field(default_factory=list)
    refuses: str = ""

    def reserve(self, pod: PodInfo, node: str) -> Status:
        self.calls.append(f"reserve {pod.name}")
        return Status(Code.UNSCHEDULABLE, "Told", "taken") if pod.name == self.refuses else SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self.calls.append(f"unreserve {pod.name}")

    def use(self, profile: object) -> None: ...

    def place(self, pods: Sequence[PodInfo], filters: object, policy: object) -> Placed:
        self.calls += [f"place {pod.name}" for pod in pods]
        return Placed(tuple(0 for _ in pods), None)

    def shortfall(self, group: str, placed: Sequence[PodInfo]) -> str:
        return "" if len(placed) == 2 else f"{len(placed)} of 2 members"

    def in_placing_order(self, group: str, pods: Sequence[PodInfo]) -> list[int]:
        return list(range(len(pods)))

    def scheduled(self, group: str, n: int) -> None: ...

    def attempt_failed(self, group: str, message: str, diagnosis: str = "", *, makes_room: bool = False) -> None: ...


def run(told: Told, *, shared: bool = False) -> Any:
    """shared: both use one claim; else they are not alike, as members with a claim each are not."""
    volumes = (PodVolume(claim="data"),) if shared else ()
    pods = [
        replace(pod_info(name), labels={} if shared else {"member": name}, volumes=volumes) for name in ("one", "two")
    ]
    policies = SimpleNamespace(choose=lambda pod: SimpleNamespace(policy=SimpleNamespace(name="")), count=print)
    profile: Any = SimpleNamespace(
        policies=policies,
        filters=(),
        post_filters=(),
        filters_for=lambda policy: (),
        binding=SimpleNamespace(reserve=(told,)),
    )
    state = SimpleNamespace(pods={pod.uid: pod for pod in pods}, names=["a"])
    view: Any = SimpleNamespace(state=state)
    cluster: Any = SimpleNamespace(state=state, assumed=set(), forget=lambda uid: told.calls.append(f"forget {uid}"))
    placer: Any = told
    cycle = SchedulingCycle(view, cluster, {"ours": profile}, told)
    queued = tuple(QueuedPod(pod, "shop/gang", 0.0) for pod in pods)
    return cycle.run(Popped("shop/gang", True, queued), placer)


@pytest.mark.parametrize("shared", [False, True])
def test_members_are_reserved_before_the_next_are_placed(shared: bool) -> None:
    told = Told()
    decisions = run(told, shared=shared)
    assert told.calls == ["place one", "reserve one", "place two", "reserve two"]
    assert [node for _, node in decisions.placed] == ["a", "a"]


def test_a_refusal_takes_all_back() -> None:
    told = Told(refuses="two")
    decisions = run(told)
    assert not decisions.placed
    (rejected,) = decisions.rejected
    assert rejected.by == {"Told"} and len(rejected.pods) == 2
    assert {"unreserve one", "forget uid-one", "forget uid-two"} <= set(told.calls)
