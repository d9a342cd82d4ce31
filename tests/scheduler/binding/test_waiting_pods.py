from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.binding.binding_steps import BindingResult, BindingVerdict
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.status import SUCCESS, Code, Status
from scheduler.binding.backpressure import Backpressure
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import Ending, Reserved, bind_status
from scheduler.binding.waiting_pods import PermitWait, WaitingPods
from testing.settable_clock import SettableClock
from testing.waiting import eventually
from tests.scheduler.binding.made_up import Done, reserved, session_to


@pytest.fixture
def waiting() -> WaitingPods:
    return WaitingPods()


@pytest.fixture
def verdicts() -> list[Status]:
    return []


def add(waiting: WaitingPods, verdicts: list[Status], one: Reserved | None = None) -> PermitWait:
    return waiting.add(one or reserved("cart-1"), {"Gang": 5.0, "Quota": 60.0}, verdicts.append)


def test_a_pod_that_waits_twice_is_told_twice(waiting: WaitingPods, verdicts: list[Status]) -> None:
    add(waiting, verdicts)
    add(waiting, verdicts)
    assert len(verdicts) == 1 and not verdicts[0].is_success and len(waiting) == 1


@given(st.lists(st.sampled_from(["allow Gang", "allow Quota", "reject Gang", "expire Gang", "expire Quota"])))
def test_there_is_one_verdict_at_most(actions: list[str]) -> None:
    waiting, verdicts = WaitingPods(), list[Status]()
    one = add(waiting, verdicts)
    for action in actions:
        verb, plugin = action.split()
        if verb == "allow":
            waiting.allow("uid-cart-1", plugin)
        elif verb == "reject":
            waiting.reject("uid-cart-1", plugin, "no")
        else:
            waiting.expire(one, plugin)
    assert len(verdicts) + len(waiting) == 1


def test_threads_that_disagree_are_one_verdict(waiting: WaitingPods, verdicts: list[Status]) -> None:
    with ThreadPoolExecutor(8) as threads:
        for number in range(200):
            one = add(waiting, verdicts, reserved(f"cart-{number}"))
            uid = one.reserved.pod.uid
            for _ in range(2):
                threads.submit(waiting.allow, uid, "Gang")
                threads.submit(waiting.allow, uid, "Quota")
                threads.submit(waiting.reject, uid, "Gang", "no")
                threads.submit(waiting.expire, one, "Quota")
    assert len(verdicts) == 200 and not len(waiting)


def test_a_burst_of_refusals_counts_once() -> None:
    clock = SettableClock(0.0)
    limit = InFlightLimit(128, clock=clock)
    for _ in range(128):
        limit.was_throttled()
    assert limit.now == 96 and limit.throttled == 128
    clock.now = 1.0
    limit.was_throttled()
    assert limit.now == 72


@given(most=st.integers(1, 300), events=st.lists(st.sampled_from(["429", "ok", "second"]), max_size=300))
def test_there_is_always_room_for_some(most: int, events: list[str]) -> None:
    clock = SettableClock(0.0)
    limit = InFlightLimit(most, clock=clock)
    for event in events:
        if event == "second":
            clock.now += 1.0
        elif event == "429":
            limit.was_throttled()
        else:
            limit.went_well()
        assert min(4, most) <= limit.now <= most


@pytest.mark.parametrize("most", [1, 2])
def test_the_smallest_limits_let_the_loop_go_on(most: int) -> None:
    pressure = Backpressure(most)
    assert not pressure.is_on(0) and pressure.is_on(most) and not pressure.is_on(0)


NO = Status(Code.ERROR, "", "no volume")


@dataclass
class Awaited:
    """Holds back pods named slow-... until they are told."""

    name: str = "Awaited"
    waiting: dict[str, asyncio.Future[Status]] = field(default_factory=dict)
    unreserved: list[str] = field(default_factory=list)
    bound: list[str] = field(default_factory=list)

    def concerns(self, pod: PodInfo) -> bool:
        if pod.name == "broken":
            raise KeyError("a mistake")
        return pod.name.startswith("slow")

    async def pre_bind(self, pod: PodInfo, node: str) -> Status:
        if pod.name == "broken":
            raise ZeroDivisionError("another")
        self.waiting[pod.name] = asyncio.get_running_loop().create_future()
        return await self.waiting[pod.name]

    def tell(self, session: ApiSession, name: str, status: Status = SUCCESS) -> None:
        session.call_soon(self.waiting[name].set_result, status)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self.unreserved.append(pod.name)

    async def bind(self, pod: PodInfo, node: str) -> Status:
        self.bound.append(pod.name)
        return SUCCESS


@pytest.fixture(scope="module")
def session() -> Iterator[ApiSession]:
    with session_to() as session:
        yield session


@pytest.fixture
def plugin() -> Awaited:
    return Awaited()


@pytest.fixture
def done() -> Done:
    return Done()


@pytest.fixture
def stages() -> Counter[str]:
    return Counter()


@pytest.fixture
def cycles(session: ApiSession, plugin: Awaited, stages: Counter[str]) -> Iterator[BindingCycles]:
    plugins = BindingPlugins((plugin,), reserve=(plugin,), awaited=(plugin,))
    cycles = BindingCycles(
        session,
        lambda pod: plugins,
        limit=InFlightLimit(1, clock=lambda: 0.0),
        observe=lambda stage, seconds: stages.update([stage]),
    )
    yield cycles
    cycles.stop(0.0)
    assert cycles.unfinished == 0


def test_a_no_and_a_mistake_give_back(session: ApiSession, cycles: BindingCycles, plugin: Awaited, done: Done) -> None:
    cycles.start([reserved("slow"), reserved("broken")], done)
    assert eventually(lambda: "slow" in plugin.waiting)
    plugin.tell(session, "slow", NO)
    done.wait(2)
    outcome, other = done.only("uid-slow"), done.only("uid-broken")
    assert (outcome.ending, outcome.reason, outcome.plugin) == (Ending.FAILED, "no volume", "Awaited")
    assert (other.ending, other.reason) == (Ending.FAILED, "plugin Awaited failed: ZeroDivisionError")
    assert sorted(plugin.unreserved) == ["broken", "slow"] and plugin.bound == []


def test_who_stops_does_not_wait_for_them(session: ApiSession, plugin: Awaited, done: Done) -> None:
    plugins = BindingPlugins((plugin,), reserve=(plugin,), awaited=(plugin,))
    cycles = BindingCycles(session, lambda pod: plugins)
    cycles.start([reserved("slow")], done)
    assert eventually(lambda: "slow" in plugin.waiting)
    cycles.stop(3600.0)
    assert done.only("uid-slow").ending is Ending.UNKNOWN
    assert plugin.bound == [] and plugin.unreserved == []


def test_who_only_asks_does_not_wait(cycles: BindingCycles, plugin: Awaited, done: Done) -> None:
    cycles.ask(reserved("slow"), done)
    done.wait(1)
    assert done.only("uid-slow").ending is Ending.UNKNOWN and plugin.waiting == {}


@dataclass
class Announcements:
    """What is written of pods, and how long their work may take before it is. waits: for the work to be over first"""

    said: list[str] = field(default_factory=list)
    waits: bool = False

    async def announce(self, pod: PodInfo, node: str, work: asyncio.Future[Any]) -> bool:
        if self.waits:
            await asyncio.wait([work])
            return False
        self.said.append(f"{pod.name} goes to {node}")
        return True

    async def withdraw(self, pod: PodInfo) -> None:
        self.said.append(f"{pod.name} stays")


@pytest.mark.parametrize(
    ("status", "waits", "said"),
    [
        (SUCCESS, False, ["slow goes to node-1"]),
        (NO, False, ["slow goes to node-1", "slow stays"]),
        (bind_status("Awaited", BindingResult(BindingVerdict.GONE, "it is gone")), False, ["slow goes to node-1"]),
        (NO, True, []),
    ],
)
def test_where_a_pod_will_go_is_said_while_it_waits(
    session: ApiSession, plugin: Awaited, done: Done, status: Status, waits: bool, said: list[str]
) -> None:
    announcements = Announcements(waits=waits)
    plugins = BindingPlugins((plugin,), awaited=(plugin,))
    cycles = BindingCycles(session, lambda pod: plugins, announcing=announcements)
    cycles.start([reserved("slow"), reserved("quick")], done)
    assert eventually(lambda: "slow" in plugin.waiting and len(announcements.said) == (not waits))
    plugin.tell(session, "slow", status)
    done.wait(2)
    assert announcements.said == said
    cycles.stop(0.0)


def test_a_pod_whose_binding_fails_after_the_wait_goes_nowhere(session: ApiSession, done: Done) -> None:
    class Refusing(Awaited):
        async def bind(self, pod: PodInfo, node: str) -> Status:
            return Status(Code.UNSCHEDULABLE, "", "it was bound elsewhere")

    plugin, announcements = Refusing(), Announcements()
    plugins = BindingPlugins((plugin,), awaited=(plugin,))
    cycles = BindingCycles(session, lambda pod: plugins, announcing=announcements)
    cycles.start([reserved("slow")], done)
    assert eventually(lambda: bool(announcements.said))
    plugin.tell(session, "slow")
    done.wait(1)
    assert announcements.said[1:] == ["slow stays"]
    cycles.stop(0.0)
