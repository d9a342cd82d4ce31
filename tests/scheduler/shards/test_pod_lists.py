"""Lists of pods of a node, or of those that wait, put into tables whose watch knows less, or more."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import urllib3
from kubernetes.client import ApiClient

from cluster.live_tables import LiveTables
from forecast.service_key import Owner
from kube.objects.objects import PodInfo, PodPhase
from scheduler.shards.foreign_pods import ForeignPods, PodLists
from testing.objects import node_info, pod_info
from testing.settable_clock import SettableClock
from testing.watch_lines import pod_line

NAME = "ours"


class World:
    """Tables with node-0 and node-1, the watch's filter over them, and an API server that lists `pods`.

    owned : nodes whose pods are followed; units: those whose waiting pods are followed
    """

    def __init__(self) -> None:
        self.tables, self.pods = LiveTables(clock=lambda: 0.0), list[dict[str, Any]]()
        self.status, self.paths, self.clock = 200, list[str](), SettableClock(0.0)
        self.owned, self.places = {"node-0"}, False
        self.while_listing: Callable[[], object] = lambda: None
        with self.tables.changing() as cluster:
            for name in ("node-0", "node-1"):
                cluster.put(node_info(name, allocatable={"cpu": 8.0, "memory": 1e12, "pods": 110.0}))
            self.cluster = cluster
        self.foreign = ForeignPods(
            self.cluster.state,
            {NAME},
            follows_all=lambda: False,
            owns=lambda node: node in self.owned,
            places=lambda unit, tries, shard: self.places,
            decides=lambda namespace, scheduler_name, annotations: False,
            holds_rooms=lambda: False,
        )
        pool = SimpleNamespace(request=self._request)
        api = SimpleNamespace(
            configuration=SimpleNamespace(host="", auth_settings=dict), rest_client=SimpleNamespace(pool_manager=pool)
        )
        self.lists = PodLists(
            cast(ApiClient, api), self.tables, foreign=self.foreign, wanted=lambda pod: True, clock=self.clock
        )

    def put(self, pod: PodInfo) -> None:
        with self.tables.changing() as cluster:
            cluster.put_pod(pod)

    def watch(self, event: str, name: str, version: int, node: str = "") -> bool:
        """Return whether the event was left out."""
        return self.foreign.is_foreign(line(event, name, version, node))

    def node_of(self, name: str) -> str:
        """Where the tables have a pod; '' = it waits, '-' = they do not know it."""
        pod = self.cluster.state.pods.get(name)
        return "-" if pod is None else pod.node

    def lists_pod(self, name: str, version: int, node: str = "") -> None:
        self.pods.append(json.loads(line("ADDED", name, version, node))["object"])

    def _request(self, method: str, path: str, **_: object) -> urllib3.BaseHTTPResponse:
        self.paths.append(path)
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "99"}, "items": [*self.pods]}
        self.while_listing()
        answer = io.BytesIO(json.dumps(body).encode())
        return urllib3.HTTPResponse(answer, status=self.status, preload_content=False)


def line(event: str, name: str, version: int, node: str = "") -> bytes:
    pod = pod_info(name, scheduler_name=NAME, owner=Owner("ReplicaSet", "web"), owner_uid="web")
    return pod_line(event, pod, version, node=node)


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_that_the_tables_know_as_waiting_sits_where_the_list_says(world: World) -> None:
    """The watch of pods may be behind that of nodes, by which the node came. Without the pod it would look empty."""
    world.put(pod_info("pod", scheduler_name=NAME))
    world.lists_pod("pod", 7, "node-0")
    assert world.lists.read_nodes(["node-0"]) == ["node-0"]
    assert world.node_of("pod") == "node-0"
    assert world.cluster.state.pod_count[world.cluster.state.row_of["node-0"]] == 1
    assert world.watch("MODIFIED", "pod", 5), "what the watch says of it is older"
    assert not world.watch("MODIFIED", "pod", 8, "node-0")


def test_a_pod_that_has_ended_as_the_watch_says_does_not_begin_again(world: World) -> None:
    world.put(pod_info("pod", scheduler_name=NAME, node="node-0", phase=PodPhase.SUCCEEDED))
    world.lists_pod("pod", 7, "node-0")
    assert world.lists.read_nodes(["node-0"]) == ["node-0"]
    assert world.cluster.state.pod_count[world.cluster.state.row_of["node-0"]] == 0


def test_a_binding_that_the_watch_knows_is_not_undone_by_a_list_of_waiting_pods(world: World) -> None:
    world.put(pod_info("pod", scheduler_name=NAME, node="node-0"))
    world.lists_pod("pod", 3)
    assert world.lists.read_waiting()
    assert world.node_of("pod") == "node-0"


def test_a_pod_that_is_deleted_while_it_is_listed_does_not_come_back(world: World) -> None:
    world.lists_pod("pod", 3, "node-0")
    world.while_listing = lambda: world.watch("DELETED", "pod", 4, "node-0")
    assert world.lists.read_nodes(["node-0"]) == ["node-0"]
    assert world.node_of("pod") == "-"


def test_a_pod_that_another_replica_binds_while_it_is_listed_does_not_wait(world: World) -> None:
    """The event was left out, and no other may follow."""
    world.lists_pod("pod", 3)
    world.while_listing = lambda: world.watch("MODIFIED", "pod", 4, "node-1")
    assert world.lists.read_waiting()
    assert world.node_of("pod") == "-"


def test_a_pod_that_was_bound_to_a_node_which_is_ours_by_now_is_read_with_it(world: World) -> None:
    world.watch("MODIFIED", "pod", 4, "node-1")
    world.owned.add("node-1")
    world.lists_pod("pod", 4, "node-1")
    assert world.lists.read_nodes(["node-1"]) == ["node-1"]
    assert world.node_of("pod") == "node-1"


def test_a_node_whose_pods_cannot_be_listed_is_not_known(world: World) -> None:
    world.status = 500
    assert world.lists.read_nodes(["node-0"]) == []
    assert not world.lists.read_waiting()
