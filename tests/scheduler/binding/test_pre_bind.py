"""PreBind: those it concerns wait beside the others, in nobody's way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube.binding.binding_steps import BindingResult, BindingVerdict
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.status import SUCCESS, Code, Status
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import Ending, bind_status
from testing.waiting import eventually
from tests.scheduler.binding.made_up import Done, reserved, session_to

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
    plugins = BindingPlugins((plugin,), reserve=(plugin,), pre_bind=(plugin,))
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
    plugins = BindingPlugins((plugin,), reserve=(plugin,), pre_bind=(plugin,))
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
    plugins = BindingPlugins((plugin,), pre_bind=(plugin,))
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
    plugins = BindingPlugins((plugin,), pre_bind=(plugin,))
    cycles = BindingCycles(session, lambda pod: plugins, announcing=announcements)
    cycles.start([reserved("slow")], done)
    assert eventually(lambda: bool(announcements.said))
    plugin.tell(session, "slow")
    done.wait(1)
    assert announcements.said[1:] == ["slow stays"]
    cycles.stop(0.0)
