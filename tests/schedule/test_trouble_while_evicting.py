"""The API server fails in the middle of the evictions of a plan: no more victims than the plan, no stale nomination."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from testing.clusters.own_nodes import (
    LONG,
    assert_settled,
    bound,
    condition,
    end_terminating,
    our_node,
    our_pod,
)
from testing.processes.scorer_process import ScorerProcess, eventually
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.faulty_proxy import Fault, FaultyProxy
from tests.schedule.conftest import Started

PREEMPTION = {"preemption": {"protect_started": "0s"}}
N_VICTIMS = 8


@pytest.fixture
def faulty(plane: ControlPlane) -> Iterator[FaultyProxy]:
    with FaultyProxy(plane.api_server.port, plane.ca_file, late_seconds=1.0) as running:
        yield running


def fill(writer: ClusterWriter, *nodes: str, cores: int = 4) -> None:
    """Nodes full of pods of low priority."""
    writer.create_many(our_node(name, cpu=cores) for name in nodes)
    pods = [our_pod(f"low-{name}-{i}", priority=10, labels={"app": name}) for name in nodes for i in range(2 * cores)]
    writer.create_many(one | {"spec": one["spec"] | {"nodeName": one["metadata"]["labels"]["app"]}} for one in pods)


def going(writer: ClusterWriter) -> set[str]:
    return {one["metadata"]["name"] for one in writer.list_all("pods") if "deletionTimestamp" in one["metadata"]}


def nominated(writer: ClusterWriter) -> dict[str, str]:
    """Node by pod that waits."""
    waiting = writer.list_all("pods", field_selector="spec.nodeName=")
    said = {one["metadata"]["name"]: one["status"].get("nominatedNodeName", "") for one in waiting}
    return {name: node for name, node in said.items() if node}


def settled(writer: ClusterWriter, process: ScorerProcess) -> None:
    assert not nominated(writer)
    assert_settled(writer, [process])


class TwoFaults:
    """The first two requests about each pod fail."""

    def __init__(self, method: str, fault: Fault) -> None:
        self._method, self._fault, self._asked = method, fault, Counter[str]()

    def __call__(self, method: str, path: str) -> Fault:
        if method != self._method or "/pods/" not in path:
            return ""
        self._asked[path] += 1
        return self._fault if self._asked[path] <= 2 else ""


@pytest.mark.long
@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
@pytest.mark.parametrize("fault", [429, 500, 409, "lost", "cut", "late"])
def test_requests_that_fail_twice_cost_no_further_victim(
    writer: ClusterWriter, start: Started, faulty: FaultyProxy, method: str, fault: Fault
) -> None:
    fill(writer, "a", "b")
    process = start(url=faulty.url, **PREEMPTION)
    faulty.fault = TwoFaults(method, fault)
    writer.create_many(our_pod(f"high-{i}", cpu="4", priority=100) for i in range(1))
    assert eventually(lambda: len(going(writer)) == N_VICTIMS, LONG), (going(writer), process.log[-3000:])
    assert sum(one[1] != "" for one in faulty.done.elements()) >= 2
    end_terminating(writer)
    assert eventually(lambda: bound(writer, "high") == 1, LONG), process.log[-3000:]
    assert bound(writer, "low") == N_VICTIMS and not going(writer)
    settled(writer, process)


def test_a_victim_that_a_policy_keeps_does_not_cost_others_over_and_over(
    writer: ClusterWriter, start: Started, faulty: FaultyProxy
) -> None:
    """The other victims' controller makes them anew, and they get their places back."""
    writer.create(our_node("a", cpu=2))
    kept = our_pod("kept", cpu="1", priority=10)
    kept["spec"]["nodeName"] = "a"
    writer.create(kept)
    process = start(url=faulty.url, **PREEMPTION)
    faulty.fault = lambda method, path: 403 if method == "DELETE" and path.endswith("/kept") else ""
    evicted = 0
    writer.create(our_pod("low-0", cpu="1", priority=10))
    assert eventually(lambda: bound(writer, "low") == 1, LONG), process.log
    writer.create(our_pod("high", cpu="2", priority=100))

    def controller() -> bool:
        nonlocal evicted
        for name in sorted(going(writer)):
            writer.delete({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}})
            evicted += 1
            writer.create(our_pod(f"low-{evicted}", cpu="1", priority=10))
        return evicted > 2

    assert not eventually(controller, 5), "evicted for nothing, over and over"
    assert eventually(lambda: not nominated(writer) and bound(writer, "low") == 1, LONG), process.log[-3000:]
    high = next(one for one in writer.list_all("pods") if one["metadata"]["name"] == "high")
    assert all(condition(high))
    settled(writer, process)
