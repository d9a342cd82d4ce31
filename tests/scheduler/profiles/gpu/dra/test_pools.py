from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.client import ApiClient, Configuration

from kube.client.api_answer import Answer, unanswered
from kube.client.kubernetes_source import source_of
from kube.objects.objects import PodInfo
from kube.session import request_retries
from scheduler.profiles.gpu.dra.claim_table import DraTable
from scheduler.profiles.gpu.dra.objects import PoolId
from scheduler.profiles.gpu.dra.pools import Inventory, NodePool
from scheduler.profiles.gpu.dra.source import dra_subscriptions, read_claims_with
from testing.placement.views import node_named, view_of
from testing.waiting import eventually
from tests.scheduler.profiles.gpu.dra.dra_world import World
from tests.scheduler.profiles.gpu.dra.manifests import (
    DRIVER,
    Manifest,
    claim,
    device,
    request,
    resource_slice,
    slice_of,
    taint_rule,
    taint_rule_of,
)


def inventory(*slices: Manifest) -> Inventory:
    made = Inventory()
    made.replace([slice_of(one) for one in slices])
    return made


def of(made: Inventory, node: str) -> list[NodePool]:
    return made.of_node(
        node, lambda where: where.all_nodes or where.node == node or (where.terms is not None and node == "wide")
    )


def devices(made: Inventory, node: str) -> list[str]:
    return [device.id.device for pool in of(made, node) for device in pool.devices]


def test_a_pool_is_complete_with_all_slices_of_its_generation() -> None:
    made = inventory(resource_slice("a", device("a0"), node="n", pool="p", count=2))
    pool = PoolId(DRIVER, "p")
    assert not made.pools[pool].is_complete
    assert made.put(slice_of(resource_slice("b", device("b0"), node="n", pool="p", count=2))) == {"n"}
    assert made.pools[pool].is_complete
    assert made.put(slice_of(resource_slice("a", device("a0"), node="n", pool="p", generation=2, count=2))) == {"n"}
    assert not made.pools[pool].is_complete and devices(made, "n") == ["a0"]
    made.delete(slice_of(resource_slice("b", node="n", pool="p")))
    made.delete(slice_of(resource_slice("a", node="n", pool="p")))
    assert not made.pools and devices(made, "n") == [] and not made.own_pools


def test_names_must_be_unique_in_a_pool_and_counters_known() -> None:
    twice = inventory(
        resource_slice("a", device("x"), node="n1", pool="p", count=2),
        resource_slice("b", device("x"), node="n2", pool="p", count=2),
    )
    assert twice.pools[PoolId(DRIVER, "p")].mistake == "duplicate device name x"
    part = device("x") | {"consumesCounters": [{"counterSet": "c", "counters": {"slices": {"value": "1"}}}]}
    unknown = inventory(resource_slice("a", part, node="n1", pool="p"))
    assert unknown.pools[PoolId(DRIVER, "p")].mistake == "counter slices not found in counter set c"


def test_devices_of_many_nodes() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}
    made = inventory(
        resource_slice("a", device("everywhere"), allNodes=True),
        resource_slice("b", device("in-rack"), nodeSelector=terms),
        resource_slice(
            "c",
            device("on-n1") | {"nodeName": "n1"},
            device("wide") | {"nodeSelector": terms},
            device("all") | {"allNodes": True},
            perDeviceNodeSelection=True,
        ),
        resource_slice("d", device("local"), node="n1"),
    )
    assert devices(made, "n1") == ["everywhere", "on-n1", "all", "local"]
    assert devices(made, "wide") == ["everywhere", "in-rack", "wide", "all"]
    assert devices(made, "n2") == ["everywhere", "all"]
    assert made.nodes_of(PoolId(DRIVER, "a")) is None and made.nodes_of(PoolId(DRIVER, "n1")) == {"n1"}
    assert made.put(slice_of(resource_slice("a", device("moved"), node="n2", pool="a"))) is None
    assert devices(made, "n1") == ["on-n1", "all", "local"] and devices(made, "n2") == ["moved", "all"]


TOLERANT = request(tolerations=[{"key": "broken", "operator": "Exists"}])


@pytest.mark.parametrize(
    ("selector", "usable"),
    [
        ({}, set()),
        ({"driver": DRIVER}, set()),
        ({"driver": "other.example.com"}, {"a", "b"}),
        ({"pool": "a"}, {"b"}),
        ({"driver": DRIVER, "pool": "a", "device": "0"}, {"b"}),
        ({"pool": "a", "device": "1"}, {"a", "b"}),
        ({"driver": "other.example.com", "pool": "a"}, {"a", "b"}),
    ],
)
def test_a_rule_taints_what_its_selector_names(selector: dict[str, str], usable: set[str]) -> None:
    slices = tuple(resource_slice(f"s-{name}", device("0"), node=name) for name in "ab")
    world = World(claim("c"), claim("tolerant", TOLERANT), slices=slices)
    world.table.taint_rules.put(taint_rule_of(taint_rule("r", **selector)))
    assert world.fits(world.pod("p", "c")) == usable
    assert world.fits(world.pod("q", "tolerant")) == {"a", "b"}


def test_rules_that_change_or_go_wake_pods_that_were_rejected() -> None:
    world, pod = World(claim("c")), World.pod("p", "c")
    world.table.taint_rules.replace([taint_rule_of(taint_rule("one")), taint_rule_of(taint_rule("two", pool="b"))])
    assert world.fits(pod) == set()
    world.table.taint_rules.put(taint_rule_of(taint_rule("one", pool="b")))
    assert world.woken == ["room"] and world.fits(pod) == {"a"}
    world.table.taint_rules.delete(taint_rule_of(taint_rule("one")))
    assert world.fits(pod) == {"a"}  # rule two is still there
    world.table.taint_rules.replace([])
    assert world.woken == ["room", "room", "room"] and world.fits(pod) == {"a", "b"}


def test_a_slice_that_comes_later_has_the_taints_of_rules_and_its_own() -> None:
    world, pod = World(claim("c"), slices=()), World.pod("p", "c")
    world.table.taint_rules.replace([taint_rule_of(taint_rule("r", device="0"))])
    own = device("1", taints=[{"key": "own", "effect": "NoSchedule"}])
    world.table.slices.put(slice_of(resource_slice("s", device("0"), own, node="a")))
    assert world.fits(pod) == set()
    world.table.slices.put(slice_of(resource_slice("s", device("0"), device("1"), node="a")))
    assert world.fits(pod) == {"a"}


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
    def _lost() -> Answer:
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
        patch.setattr(request_retries, "_PAUSE_SECONDS", 0.0)
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


class ApiServer:
    """Lists claims as they are, and has a watch wait for ever: one that lags.

    status : of lists of claims
    """

    def __init__(self) -> None:
        self.claims: list[Manifest] = []
        self.status = 200
        self.is_over = threading.Event()
        world = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                has_claims = "/resourceclaims" in self.path
                if "watch=" in self.path:
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    world.is_over.wait(20)
                    self.close_connection = True
                    return
                self.send_response(world.status if has_claims else 200)
                items = world.claims if has_claims else []
                kind = "ResourceClaimList" if has_claims else "List"
                listed = {"kind": kind, "metadata": {"resourceVersion": "1"}, "items": items}
                body = msgspec.json.encode(listed)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.table = DraTable(view_of([node_named("a")]).state, threading.RLock)
        api = ApiClient(Configuration(host=f"http://127.0.0.1:{self.http.server_port}"))
        self.source = source_of(api, dra_subscriptions(self.table))
        read_claims_with(self.table, self.source)

    def read_again(self) -> Callable[[], bool]:
        return self.table.read_again()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    made = ApiServer()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.is_over.set()
    made.source.stop()
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def test_what_a_predecessor_allocated_is_known_before_anything_is_decided(server: ApiServer) -> None:
    server.source.start()
    assert server.source.wait_synced(10)
    server.claims.append(claim("c"))
    assert list(server.table.all_claims()) == []
    is_done = server.read_again()
    assert eventually(is_done)
    assert [one.name for one in server.table.all_claims()] == ["c"]
