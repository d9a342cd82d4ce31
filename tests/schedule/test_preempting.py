"""Preemption through a real API server: who goes, who stays, and what both are told. There is no kubelet: whoever is
told to go stays, terminating, until the test ends it."""

from __future__ import annotations

from testing.clusters.own_nodes import (
    assert_settled,
    bound,
    condition,
    end_terminating,
    group,
    groups,
    member,
    our_node,
    our_pod,
)
from testing.servers.cluster_objects import ClusterWriter, Manifest, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started

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
    assert eventually(lambda: all(condition(_pod(writer, "equal")))), process.log
    assert _going(writer) == set()

    writer.create_many(our_pod(f"high-{i}", cpu="2", priority=100) for i in range(2))
    gone = {f"low-open-{i}" for i in range(4)}
    assert eventually(lambda: _going(writer) == gone), (_going(writer), process.log)
    for i in range(2):
        waits = _pod(writer, f"high-{i}")
        assert waits["status"].get("nominatedNodeName") == "open" and "nodeName" not in waits["spec"]
    for name in gone:
        told = {one["type"]: one for one in _pod(writer, name)["status"]["conditions"]}
        assert told["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
    end_terminating(writer)
    assert eventually(lambda: bound(writer, "high") == 2), process.log
    nodes = assert_settled(writer, [process])
    assert {name: node for name, node in nodes.items() if name.startswith("high")} == {
        "high-0": "open",
        "high-1": "open",
    }
    assert nodes["equal"] == "" and _going(writer) == set()
    assert process.metric("forecast_preemption_victims_total") >= 4


def test_a_gang_evicts_what_the_whole_of_it_needs_or_nobody(
    plane: ControlPlane, writer: ClusterWriter, start: Started
) -> None:
    writer.create_many(our_node(name, cpu=4) for name in ("guarded", "left", "right"))
    writer.create(_budget("guarded", app="guarded"))
    low = [our_pod(f"guarded-{i}", cpu="1", priority=10, labels={"app": "guarded"}) for i in range(4)]
    low += [our_pod(f"plain-{i}", cpu="1", priority=10) for i in range(4)]
    low += [member("batch", i, cpu="2", priority=10) for i in range(2)]
    where = ["guarded"] * 4 + ["left", "right"] * 3
    with groups(plane) as those:
        for name, members in (("batch", 2), ("high", 4), ("never", 13)):
            those.create(group(name, members=members))
        writer.create_many(
            made | {"spec": made["spec"] | {"nodeName": node}, "status": running()}
            for made, node in zip(low, where, strict=True)
        )
        process = start(preemption=PREEMPTION)
        # One more than there is room for if everybody goes.
        writer.create_many(member("never", i, cpu="1", priority=100) for i in range(13))
        why = "no victims found that would make room for the whole gang"
        assert eventually(lambda: why in condition(_pod(writer, "never-member-0"))[1]), process.log
        assert _going(writer) == set()
        writer.delete_many(one for one in writer.list_all("pods") if one["metadata"]["name"].startswith("never"))
        writer.create_many(member("high", i, cpu="2", priority=100) for i in range(4))
        gone = {"batch-member-0", "batch-member-1", *(f"plain-{i}" for i in range(4))}
        assert eventually(lambda: _going(writer) == gone), (_going(writer), process.log)
        nominated = [_pod(writer, f"high-member-{i}")["status"].get("nominatedNodeName") for i in range(4)]
        assert sorted(nominated) == ["left", "left", "right", "right"]
        assert bound(writer, "high") == 0
        process.terminate()
        process = start(preemption=PREEMPTION)  # it reads where room is being made
        writer.create_many(our_pod(f"late-{i}", cpu="1", priority=100) for i in range(2))
        assert eventually(lambda: len(_going(writer)) == 8), (_going(writer), process.log)
        assert sum(name.startswith("guarded") for name in _going(writer)) == 2, "room for the gang is kept for it"
        end_terminating(writer)
        assert eventually(lambda: bound(writer, "high") == 4 and bound(writer, "late") == 2), process.log
        nodes = assert_settled(writer, [process])
    assert {node for name, node in nodes.items() if name.startswith("high")} == {"left", "right"}
    assert sum(name.startswith("guarded") for name in nodes) == 2 and not _going(writer)


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
