"""Pods with claims come, are written or not, fail and go, in any order: no device is ever given to two claims."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.backoff import Backoff
from kube.client.api_answer import ApiAnswer, unanswered
from kube.objects.objects import PodInfo
from kube.session import session_calls
from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import claim, request

_STEPS = ("reserve", "pre_bind", "fail", "bound", "settle", "watch", "lose", "conflict", "end")


class _Lives:
    """reserved: by pod name, where it is; ready: those that may be bound."""

    def __init__(self) -> None:
        self.world = World(*(claim(f"c{i}", request(count=1 + i % 2)) for i in range(6)))
        self.reserved: dict[str, tuple[PodInfo, str]] = {}
        self.ready: set[str] = set()
        self.bound: dict[str, tuple[PodInfo, str]] = {}

    def step(self, what: str, number: int) -> None:
        world, name, on = self.world, f"p{number}", "ab"[number % 2]
        claims = [f"c{number}"] if number % 3 else [f"c{number}", f"c{(number + 1) % 6}"]
        pod, node = self.reserved.get(name, (world.pod(name, *claims), ""))
        match what:
            case "reserve" if name not in self.reserved and name not in self.bound:
                for where in (on, "ab"[on == "a"]):
                    if where in world.fits(pod) and world.reserve(pod, where).is_success:
                        self.reserved[name] = (pod, where)
                        break
            case "pre_bind" if node and name not in self.ready:
                if world.pre_bind(pod, node).is_success:
                    self.ready.add(name)
                else:
                    self._fails(name)
            case "fail" if node:
                self._fails(name)
            case "bound" if name in self.ready:
                world.plugin.post_bind(pod, node)
                self.bound[name] = self.reserved.pop(name)
                self.ready.discard(name)
            case "settle":
                world.settle()
            case "watch":
                world.watch(f"c{number}")
            case "lose":
                world.server.after = self._lost
            case "conflict":
                world.server.version += 1
                world.server.objects[f"c{number}"]["metadata"]["resourceVersion"] = str(world.server.version)
            case "end" if name in self.bound:
                self._ends(name)
            case _:
                pass

    def _fails(self, name: str) -> None:
        self.world.plugin.unreserve(*self.reserved.pop(name))
        self.ready.discard(name)

    @staticmethod
    def _lost() -> ApiAnswer:
        return unanswered(TimeoutError())

    def _ends(self, name: str) -> None:
        """As the controller of claims does: a claim that nobody uses is deallocated."""
        pod, _ = self.bound.pop(name)
        for one in pod.resource_claims:
            manifest = json.loads(json.dumps(self.world.server.objects[one.claim or ""]))
            self.world.server.version += 1
            manifest["metadata"]["resourceVersion"] = str(self.world.server.version)
            status = manifest.get("status", {})
            status["reservedFor"] = [user for user in status.get("reservedFor", ()) if user["uid"] != name]
            if not status["reservedFor"]:
                status.pop("allocation", None)
            self.world.put(manifest)

    def check(self) -> None:
        """What is written, and what is about to be."""
        server, table = self.world.server, self.world.table
        held = Counter(one for name in server.objects for one in server.devices(name))
        assert max(held.values(), default=1) == 1, held
        assert set(held) <= self.world.used()
        assert all(len(claims) == 1 for claims in table.used.values())
        for pod, node in self.bound.values():
            for one in pod.resource_claims:
                assert server.devices(one.claim or "") and pod.uid in server.users(one.claim or "")
                assert {device[0] for device in server.devices(one.claim or "")} == {node}


@pytest.fixture(autouse=True, scope="module")
def _no_pauses() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_calls, "_BACKOFF", Backoff(0.0))
        yield


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 5)), max_size=40))
def test_no_device_is_given_twice_and_none_is_lost(steps: list[tuple[str, int]]) -> None:
    lives = _Lives()
    for what, number in steps:
        lives.step(what, number)
        lives.check()
    for name in list(lives.reserved):
        lives._fails(name)
    lives.world.server.after = None
    lives.world.settle()
    for name in list(lives.bound):
        lives._ends(name)
    for i in range(6):
        lives.world.watch(f"c{i}")
    assert lives.world.used() == set() and not lives.world.table.in_flight
    assert all(lives.world.server.users(f"c{i}") == [] for i in range(6))
