"""Preemption through a real API server: who goes, who stays, and what both are told. There is no kubelet: whoever is
told to go stays, terminating, until the test ends it."""

from __future__ import annotations

from tests.processes.scorer_process import eventually
from tests.schedule.conftest import Started
from tests.schedule.own_nodes import (
    LONG,
    assert_settled,
    bound,
    condition,
    end_terminating,
    our_node,
    our_pod,
)
from tests.servers.cluster_objects import ClusterWriter, Manifest, running

PREEMPTION = {"protect_started": "0s"}


def test_lower_priority_makes_room_equal_does_not_and_budgets_are_heeded(writer: ClusterWriter, start: Started) -> None:
    writer.create_many((our_node("guarded"), our_node("open")))
    writer.create(_budget("guarded", app="guarded"))
    low = []
    for node in ("guarded", "open"):
        pods = [our_pod(f"low-{node}-{i}", cpu="1", priority=10, labels={"app": node}) for i in range(4)]
        low += [made | {"spec": made["spec"] | {"nodeName": node}, "status": running()} for made in pods]
    writer.create_many(low)
    process = start(preemption=PREEMPTION)
    writer.create(our_pod("equal", cpu="1", priority=10))
    assert eventually(lambda: all(condition(_pod(writer, "equal"))), LONG), process.log
    assert _going(writer) == set()

    writer.create_many(our_pod(f"high-{i}", cpu="2", priority=100) for i in range(2))
    gone = {f"low-open-{i}" for i in range(4)}
    assert eventually(lambda: _going(writer) == gone, LONG), (_going(writer), process.log)
    for i in range(2):
        waits = _pod(writer, f"high-{i}")
        assert waits["status"].get("nominatedNodeName") == "open" and "nodeName" not in waits["spec"]
    for name in gone:
        told = {one["type"]: one for one in _pod(writer, name)["status"]["conditions"]}
        assert told["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
    end_terminating(writer)
    assert eventually(lambda: bound(writer, "high") == 2, LONG), process.log
    nodes = assert_settled(writer, [process])
    assert {name: node for name, node in nodes.items() if name.startswith("high")} == {
        "high-0": "open",
        "high-1": "open",
    }
    assert nodes["equal"] == "" and _going(writer) == set()
    assert process.metric("forecast_preemption_victims_total") >= 4


def test_many_at_once_take_what_they_need_and_no_more(writer: ClusterWriter, start: Started) -> None:
    n_nodes, per_node = 10, 8
    writer.create_many(our_node(f"node-{i}", cpu=4) for i in range(n_nodes))
    process = start(preemption=PREEMPTION)
    writer.create_many(our_pod(f"low-{i}", cpu="500m") for i in range(n_nodes * per_node))
    assert eventually(lambda: bound(writer, "low") == n_nodes * per_node, LONG), process.log
    writer.create_many(our_pod(f"high-{i}", cpu="1", priority=100) for i in range(20))

    def placed() -> bool:
        end_terminating(writer)
        return bound(writer, "high") == 20

    assert eventually(placed, LONG), process.log[-3000:]
    nodes = assert_settled(writer, [process])
    # 80 in all, two for each of the 20.
    assert sum(name.startswith("low") for name in nodes) == n_nodes * per_node - 40


def _pod(writer: ClusterWriter, name: str) -> Manifest:
    return next(one for one in writer.list_all("pods") if one["metadata"]["name"] == name)


def _going(writer: ClusterWriter) -> set[str]:
    return {one["metadata"]["name"] for one in writer.list_all("pods") if "deletionTimestamp" in one["metadata"]}


def _budget(name: str, *, app: str) -> Manifest:
    """Nobody of that app may go; with the status that its controller would give it."""
    counts = {"disruptionsAllowed": 0, "currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": app}}},
        "status": {"observedGeneration": 1} | counts,
    }
