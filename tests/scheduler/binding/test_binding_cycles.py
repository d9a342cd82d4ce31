"""The binding cycle with plugins of all kinds: each pod is told about once, what was reserved is given back once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.status import SUCCESS, Code, Status
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import BindingOutcome, Ending, Reserved
from testing.waiting import eventually
from tests.scheduler.binding.made_up import Done, reserved, session_to

NO = Status(Code.UNSCHEDULABLE, "", "no")
WAITS = Status(Code.WAIT)


@dataclass
class Recorder:
    """Any plugin: says what it is told to by pod name, and records who asked what."""

    name: str = "Recorder"
    says: Mapping[str, Status | Exception] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def _say(self, what: str, pod: PodInfo) -> Status:
        self.calls.append((what, pod.name))
        status = self.says.get(pod.name, SUCCESS)
        if isinstance(status, Exception):
            raise status
        return status

    def reserve(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self._say("unreserve", pod)

    def concerns(self, pod: PodInfo) -> bool:
        return True

    async def pre_bind(self, pod: PodInfo, node: str) -> Status:
        status = self._say("pre_bind", pod)
        if status is WAITS:
            await asyncio.sleep(3600)
        return status

    def post_bind(self, pod: PodInfo, node: str) -> None:
        self._say("post_bind", pod)


@dataclass
class FakeBinder:
    """Says what it is told to by pod name; None = never ends."""

    name: str = "FakeBinder"
    says: dict[str, Status | Exception | None] = field(default_factory=dict)
    seen: dict[str, Status] = field(default_factory=dict)
    most: int = 0
    now: int = 0
    bound: list[str] = field(default_factory=list)

    async def bind(self, pod: PodInfo, node: str) -> Status:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            status = self.says.get(pod.name, SUCCESS)
            if status is None:
                await asyncio.sleep(3600)
            if isinstance(status, Exception):
                raise status
            assert status is not None
            if status.is_success:
                self.bound.append(pod.name)
            return status
        finally:
            self.now -= 1

    async def look(self, pod: PodInfo, node: str) -> Status:
        return self.seen[pod.name]


@pytest.fixture(scope="module")
def session() -> Iterator[ApiSession]:
    with session_to() as session:
        yield session


@pytest.fixture
def binder() -> FakeBinder:
    return FakeBinder()


@pytest.fixture
def done() -> Done:
    return Done()


class Running:
    """Cycles that are stopped at the end."""

    def __init__(self, session: ApiSession, plugins: BindingPlugins, limit: InFlightLimit | None = None) -> None:
        self.stages = Counter[str]()
        self.cycles = BindingCycles(session, lambda pod: plugins, limit=limit, observe=self._observe)

    def _observe(self, stage: str, seconds: float) -> None:
        assert seconds >= 0
        self.stages[stage] += 1

    def __enter__(self) -> BindingCycles:
        return self.cycles

    def __exit__(self, *unused: object) -> None:
        self.cycles.stop(0.0)
        assert self.cycles.unfinished == 0


def test_after_a_failure_all_is_given_back_last_one_first(session: ApiSession, binder: FakeBinder, done: Done) -> None:
    order: list[str] = []

    @dataclass
    class Holder(Recorder):
        def unreserve(self, pod: PodInfo, node: str) -> None:
            order.append(self.name)
            if self.name == "second":
                raise KeyError("a mistake")

    binder.says["cart-1"] = replace(NO, plugin="FakeBinder")
    holders = tuple(Holder(name) for name in ("first", "second", "third"))
    with Running(session, BindingPlugins((binder,), holders)) as cycles:
        cycles.start([reserved("cart-1")], done)
        done.wait(1)
    assert order == ["third", "second", "first"]
    outcome = done.only("uid-cart-1")
    assert (outcome.ending, outcome.reason) == (Ending.FAILED, "no")


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
@pytest.mark.parametrize("status", [NO, Status(Code.ERROR, "", "broken"), ZeroDivisionError("a mistake")])
def test_what_says_no_or_fails_ends_it(
    session: ApiSession, binder: FakeBinder, done: Done, point: str, status: Status | Exception
) -> None:
    plugin, holder = Recorder(says={"cart-1": status}), Recorder("Holder")
    if point == "bind":
        binder.says["cart-1"] = status
    plugins = BindingPlugins((binder,), (holder,), (plugin,) if point == "pre_bind" else ())
    with Running(session, plugins) as cycles:
        cycles.start([reserved("cart-1"), reserved("cart-2")], done)
        done.wait(2)
    outcome = done.only("uid-cart-1")
    # Whether an error comes before or after a request that binds can be told of PreBind only.
    is_known = point != "bind" or status is NO
    assert outcome.ending is (Ending.FAILED if is_known else Ending.UNKNOWN)
    assert holder.calls == ([("unreserve", "cart-1")] if is_known else [])
    assert outcome.reason
    assert done.only("uid-cart-2").is_bound


def test_so_many_are_under_way_at_once_and_fewer_after_429(session: ApiSession, binder: FakeBinder, done: Done) -> None:
    limit = InFlightLimit(16, clock=lambda: 0.0)
    with Running(session, BindingPlugins((binder,)), limit) as cycles:
        cycles.start([reserved(f"cart-{i}") for i in range(200)], done)
        done.wait(200)
        assert binder.most == 16
        binder.most = 0
        limit.was_throttled()
        cycles.start([reserved(f"more-{i}") for i in range(200)], done)
        done.wait(400)
        assert binder.most == 12
    assert all(done.only(uid).is_bound for uid in done.told)


def test_asking_later_settles_what_was_not_known(session: ApiSession, binder: FakeBinder, done: Done) -> None:
    holder = Recorder("Holder")
    binder.seen = {"a": SUCCESS, "b": NO, "c": Status(Code.ERROR, "", "no answer")}
    with Running(session, BindingPlugins((binder,), (holder,), post_bind=(holder,))) as cycles:
        for name in "abc":
            cycles.ask(reserved(name), done)
        done.wait(3)
    assert [done.only(f"uid-{name}").ending for name in "abc"] == [Ending.BOUND, Ending.FAILED, Ending.UNKNOWN]
    assert sorted(holder.calls) == [("post_bind", "a"), ("unreserve", "b")] and binder.bound == []


def test_the_end_tells_of_every_pod_once(session: ApiSession, binder: FakeBinder, done: Done) -> None:
    """Some wait in PreBind, some are under way, some are queued, some come too late."""
    gang = Recorder("Gang", says={"waits": WAITS})
    binder.says = dict.fromkeys(["stuck-0", "stuck-1"])
    plugins = BindingPlugins((binder,), (gang,), (gang,))
    with Running(session, plugins, InFlightLimit(2, clock=lambda: 0.0)) as cycles:
        names = ["waits", "stuck-0", "stuck-1", "queued-0", "queued-1"]
        cycles.start([reserved(name) for name in names], done)
        assert eventually(lambda: binder.now == 2)
        cycles.stop(0.0)
        cycles.start([reserved("late")], done)
    assert {done.only(f"uid-{name}").ending for name in [*names, "late"]} == {Ending.UNKNOWN}
    assert not binder.bound and not [call for call in gang.calls if call[0] == "unreserve"]


def test_a_session_that_ended_first_loses_no_pod(binder: FakeBinder, done: Done) -> None:
    gang = Recorder("Gang", says={"waits": WAITS})
    binder.says = {"stuck": None}
    with session_to() as session:
        cycles = BindingCycles(session, lambda pod: BindingPlugins((binder,), (), (gang,)))
        cycles.start([reserved("waits"), reserved("stuck")], done)
        assert eventually(lambda: binder.now == 1)
    cycles.start([reserved("late")], done)
    cycles.stop(0.0)
    assert {done.only(f"uid-{name}").ending for name in ("waits", "stuck", "late")} == {Ending.UNKNOWN}


def test_a_listener_that_fails_does_not_stop_the_others(session: ApiSession, binder: FakeBinder, done: Done) -> None:
    def tell(one: Reserved, outcome: BindingOutcome) -> None:
        done(one, outcome)
        raise ZeroDivisionError("a mistake")

    with Running(session, BindingPlugins((binder,)), InFlightLimit(1, clock=lambda: 0.0)) as cycles:
        cycles.start([reserved(f"cart-{i}") for i in range(20)], tell)
        done.wait(20)
    assert all(done.only(uid).is_bound for uid in done.told)


def test_a_listener_that_waits_holds_up_no_binding(session: ApiSession, binder: FakeBinder, done: Done) -> None:
    """It waits for the lock of the tables, say, which the cycle has."""
    go_on = threading.Event()

    def tell(one: Reserved, outcome: BindingOutcome) -> None:
        go_on.wait(60)
        done(one, outcome)

    with Running(session, BindingPlugins((binder,)), InFlightLimit(2, clock=lambda: 0.0)) as cycles:
        cycles.start([reserved(f"cart-{i}") for i in range(20)], tell)
        assert eventually(lambda: len(binder.bound) == 20 and cycles.in_flight == 0)
        assert not done.told and cycles.unfinished == 20
        go_on.set()
        done.wait(20)


KINDS = st.sampled_from(["bound", "refused", "unknown", "raises", "denied", "skipped"])


@settings(max_examples=30)
@given(kinds=st.lists(KINDS, min_size=1, max_size=25), room=st.integers(1, 8), is_stopped_early=st.booleans())
def test_whatever_happens_each_is_told_once_and_given_back_once(
    session: ApiSession, kinds: list[str], room: int, is_stopped_early: bool
) -> None:
    names = {f"{kind.replace(' ', '-')}-{number}": kind for number, kind in enumerate(kinds)}
    binds: dict[str, Status | Exception | None] = {
        "refused": NO,
        "unknown": Status(Code.ERROR, "", "time"),
        "raises": ZeroDivisionError(),
        "skipped": Status(Code.SKIP),
    }
    binder = FakeBinder(says={name: binds[kind] for name, kind in names.items() if kind in binds})
    before = Recorder("Before", says={name: NO for name, kind in names.items() if kind == "denied"})
    holder, done = Recorder("Holder"), Done()
    plugins = BindingPlugins((binder,), (holder,), (before,), (holder,))
    with Running(session, plugins, InFlightLimit(room, clock=lambda: 0.0)) as cycles:
        cycles.start([reserved(name) for name in names], done)
        if not is_stopped_early:
            done.wait(len(names))
    assert len(done.told) == len(names) and all(len(told) == 1 for told in done.told.values())
    ended = {name: done.only(f"uid-{name}").ending for name in names}
    calls = Counter(holder.calls)
    for name, ending in ended.items():
        assert calls["unreserve", name] == (ending is Ending.FAILED)
        assert calls["post_bind", name] == (ending is Ending.BOUND)
        assert (name in binder.bound) <= (ending is not Ending.FAILED)
        if not is_stopped_early:
            open_, kind = ("unknown", "raises"), names[name]
            expected = Ending.BOUND if kind == "bound" else Ending.UNKNOWN if kind in open_ else Ending.FAILED
            assert ending is expected, kind
