"""Preemption, gangs and nodes that come and go while the API server fails requests, is paused, and the loop is killed:
at the end every pod has a node or a reason, by the API server's own state."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from testing.clusters.own_nodes import (
    assert_settled,
    condition,
    group,
    groups,
    member,
    our_node,
    our_pod,
    overcommitted,
)
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.faulty_proxy import Fault, FaultyProxy
from testing.waiting import eventually
from tests.schedule.conftest import Started

IN_FLIGHT = 4
SETTINGS = {"preemption": {"protect_started": "0s"}, "bindings_in_flight": IN_FLIGHT, "binding_timeout": "4s"}
CORES = 4
FAULTS: tuple[Fault, ...] = (429, 500, 503, 409, "lost", "cut", "late")


class Storm:
    """Plays kubelets, the garbage collector of pods, a controller of important pods, and misfortune.

    victims   : UIDs of pods that were seen to go for others
    important : pods of high priority that were ever made
    remade    : nodes that were deleted and made anew
    refused   : pods that kubelets could not take: bound in the moment in which their node was made anew
    """

    def __init__(self, plane: ControlPlane, writer: ClusterWriter, proxy: FaultyProxy, n_nodes: int, seed: int) -> None:
        self.plane, self.writer, self.proxy, self.n_nodes = plane, writer, proxy, n_nodes
        self.random, self._lock = random.Random(seed), threading.Lock()
        self.victims: set[str] = set()
        self.guarded_gone: set[str] = set()
        self.important, self.remade, self.refused = 0, 0, 0
        self.stuck = True

    def fault(self, method: str, path: str) -> Fault:
        """One of four writes goes wrong."""
        with self._lock:
            if method == "GET" or "/pods" not in path or self.random.random() > 0.25:
                return ""
            return self.random.choice(FAULTS)

    def fill(self) -> None:
        """Pods of low priority in all of the room; those of the first two nodes are guarded by a budget."""
        self.writer.create_many(our_node(f"node-{i}", cpu=CORES, labels=_guard(i)) for i in range(self.n_nodes))
        self.writer.create(_budget())
        low = []
        for i in range(self.n_nodes):
            for number in range(2 * CORES):
                made = our_pod(f"low-{i}-{number}", priority=10, labels={"app": "guarded"} if i < 2 else {"app": "low"})
                made["spec"] |= {"nodeName": f"node-{i}"}
                low.append(made)
        self.writer.create_many(low)

    def add_important(self, n_pods: int) -> None:
        """Each needs the room of two others."""
        for _ in range(n_pods):
            self.important += 1
            self.writer.create(our_pod(f"high-{self.important}", cpu="1", priority=100))

    def remake_node(self) -> None:
        """Deleted, its pods with it, and made anew: smaller, in another zone, perhaps tainted."""
        name = f"node-{self.random.randrange(2, self.n_nodes)}"
        self.writer.delete(next(one for one in self.writer.list_all("nodes") if one["metadata"]["name"] == name))
        self.collect(name)
        made = our_node(name, cpu=self.random.choice((2, 3)), labels={"zone": str(self.remade)})
        if self.random.random() < 0.3:
            made["spec"] = {"taints": [{"key": "new", "value": "", "effect": "NoSchedule"}]}
        self.writer.create(made)
        self.remade += 1

    def collect(self, node: str) -> None:
        """Pods of a node that is gone; a controller makes important ones anew."""
        there = self.writer.list_all("pods", field_selector=f"spec.nodeName={node}")
        self.writer.delete_many(there)
        self.add_important(sum(one["metadata"]["name"].startswith("high") for one in there))

    def kubelets(self) -> bool:
        """Pods that were asked to end do, but for every seventh while some are stuck; pods beyond allocatable go."""
        for one in self.writer.list_all("pods"):
            if "deletionTimestamp" not in one["metadata"]:
                continue
            (self.guarded_gone if _is_guarded(one) else self.victims).add(one["metadata"]["uid"])
            if not self.stuck or int(one["metadata"]["uid"][:8], 16) % 7:
                self.writer.delete(one)
        return True

    def admit(self) -> None:
        """Kubelets refuse what came last and has no room."""
        while over := overcommitted(self.writer.list_all("pods"), self.writer.list_all("nodes")):
            for node in over:
                there = self.writer.list_all("pods", field_selector=f"spec.nodeName={node}")
                last = max(there, key=_bound_at)
                self.writer.delete(last)
                self.refused += 1
                self.add_important(last["metadata"]["name"].startswith("high"))

    def pause(self, seconds: float) -> None:
        """The API server says nothing for a while."""
        self.plane.api_server.pause()
        threading.Event().wait(seconds)
        self.plane.api_server.resume()


def _guard(number: int) -> dict[str, str]:
    return {"guarded": "yes"} if number < 2 else {}


def _is_guarded(one: Manifest) -> bool:
    return bool(one["metadata"]["labels"].get("app") == "guarded")


def _bound_at(one: Manifest) -> str:
    times = (each["lastTransitionTime"] for each in one["status"]["conditions"] if each["type"] == "PodScheduled")
    return f"{next(times, '')} {one['metadata']['name']}"


def _budget() -> Manifest:
    counts = {"disruptionsAllowed": 0, "currentHealthy": 16, "desiredHealthy": 16, "expectedPods": 16}
    spec = {"minAvailable": 16, "selector": {"matchLabels": {"app": "guarded"}}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded", "namespace": "default"},
        "spec": spec | {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
        "status": {"observedGeneration": 1} | counts,
    }


def ridden_out(
    plane: ControlPlane, writer: ClusterWriter, start: Started, *, n_nodes: int, rounds: int, per_round: int, seed: int
) -> None:
    with FaultyProxy(plane.api_server.port, plane.ca_file) as proxy, groups(plane) as those:
        storm = Storm(plane, writer, proxy, n_nodes, seed)
        storm.fill()
        process: ScorerProcess = start(url=proxy.url, **SETTINGS)
        proxy.fault = storm.fault
        acts: list[Callable[[], None]] = [storm.remake_node, lambda: storm.pause(1.5), lambda: None, storm.remake_node]
        for turn in range(rounds):
            storm.add_important(per_round)
            if turn % 3 == 0:
                those.create(group(f"gang-{turn}", members=3))
                writer.create_many(member(f"gang-{turn}", number, cpu="1", priority=100) for number in range(3))
            threading.Event().wait(storm.random.uniform(0.2, 1.0))
            acts[turn % len(acts)]()
            if turn % 4 == 2:
                process.kill()
                process = start(url=proxy.url, **SETTINGS)
            storm.kubelets()
        proxy.fault = lambda method, path: ""
        storm.stuck = False

        def at_rest() -> bool:
            storm.kubelets()
            pods = writer.list_all("pods")
            is_clear = all(one["spec"].get("nodeName") or all(condition(one)) for one in pods)
            is_quiet = not any("deletionTimestamp" in one["metadata"] for one in pods)
            stale = [one for one in pods if _is_stale(one)]
            return is_clear and is_quiet and not stale

        calm = 0

        def calm_for_a_while() -> bool:
            nonlocal calm
            calm = calm + 1 if at_rest() else 0
            return calm > 10

        assert eventually(calm_for_a_while), (_stale(writer), process.log[-3000:])
        storm.admit()
        assert eventually(calm_for_a_while), (_stale(writer), process.log[-3000:])
        nodes = assert_settled(writer, [process])
    assert not storm.guarded_gone, f"a budget was violated beside other room: {process.log[-3000:]}"
    assert storm.refused <= IN_FLIGHT * storm.remade
    important = storm.important + 3 * ((rounds + 2) // 3)
    assert len(storm.victims) <= 2 * important + 2 * CORES * storm.remade, "more victims than there was need for"
    assert sum(1 for one in proxy.done if one[1]) >= 5, proxy.done
    waiting = [name for name, node in nodes.items() if not node and name.startswith("high")]
    low_there = [name for name, node in nodes.items() if node and name.startswith("low-") and _of(name) >= 2]
    assert not waiting or len(low_there) <= 2 * n_nodes, f"{waiting} wait beside {low_there}"


def _of(name: str) -> int:
    return int(name.split("-")[1])


def _is_stale(one: Manifest) -> bool:
    """It is nominated, and sits elsewhere or nowhere though nothing leaves."""
    nominated = one["status"].get("nominatedNodeName", "")
    return bool(nominated) and one["spec"].get("nodeName", "") != nominated


def _stale(writer: ClusterWriter) -> list[tuple[str, str, str]]:
    return [
        (one["metadata"]["name"], one["status"]["nominatedNodeName"], condition(one)[1])
        for one in writer.list_all("pods")
        if _is_stale(one)
    ]


def test_a_short_storm(plane: ControlPlane, writer: ClusterWriter, start: Started) -> None:
    ridden_out(plane, writer, start, n_nodes=7, rounds=3, per_round=2, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_long_storm(plane: ControlPlane, writer: ClusterWriter, start: Started, seed: int) -> None:
    ridden_out(plane, writer, start, n_nodes=32, rounds=16, per_round=3, seed=seed)
