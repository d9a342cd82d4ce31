"""Whatever happens in whatever order, the tables are those of the objects that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.tables.changes import (
    Change,
    NodeAdded,
    NodeChanged,
    NodeRemoved,
    PodChange,
    Seat,
    ServiceAdded,
    one_by_one,
)
from cluster.tables.self_check import self_check
from cluster.tables.state import ClusterState
from forecast.service_key import NO_OWNER, Owner, ServiceKey
from kube.decoding.decoding import Kind
from kube.objects import services as services_module
from kube.objects.objects import NodeInfo, PodInfo, PodPhase, QosClass
from tests.kube.api_objects import job, node, pod, replica_set

NODE_NAMES = ("n1", "n2", "n3")
T0 = 1_000_000.0

REPLICA_SETS = [
    replica_set("cart-7d9f", deployment="cart", revision=1, created=T0 - 9000),
    replica_set("cart-8c5b", deployment="cart", revision=2, desired_replicas=3, created=T0),
    replica_set("cart-9b4c", deployment="cart", revision=3, desired_replicas=5, created=T0 + 1800),
    replica_set("lone-6x", revision=None),
]
JOBS = [job("report-28540000", cron_job="report"), job("migrate")]
CONTROLLERS = [
    (NO_OWNER, ""),
    *((Owner("ReplicaSet", r.name), r.uid) for r in REPLICA_SETS),
    *((Owner("Job", j.name), j.uid) for j in JOBS),
    (Owner("StatefulSet", "db"), "sts"),
    (Owner("DaemonSet", "agent"), "ds"),
    (Owner("Node", "n1"), "node-uid"),
]
AMOUNTS = st.sampled_from([0.0, 0.1, 0.25, 0.3, 1.0, 3.3])


class Listener:
    """Knows only what changes say, and insists that they fit together.

    seats: by pod UID; rows: in use; services: number -> key as it was when the number was given out
    """

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.seats: dict[str, Seat] = {}
        self.rows: set[int] = set()
        self.services: dict[int, ServiceKey] = {}

    def hear(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            match change:
                case PodChange(pod, before, after):
                    assert self.seats.pop(pod.uid, None) == before
                    if after is not None:
                        assert after.node in self.rows
                        assert after.service in self.services
                        self.seats[pod.uid] = after
                case NodeAdded(row):
                    assert row not in self.rows
                    self.rows.add(row)
                case NodeChanged(row):
                    assert row in self.rows
                case NodeRemoved(row):
                    self.rows.remove(row)
                    assert not any(seat.node == row for seat in self.seats.values())
                case ServiceAdded(service):
                    assert not any(seat.service == service for seat in self.seats.values())
                    self.services[service] = self.state.services[service]

    def check(self) -> None:
        """Nothing happened that was not said."""
        assert self.seats == self.state.seat_of
        assert self.rows == set(self.state.row_of.values())
        assert {key: index for index, key in self.services.items()} == self.state.service_of


@st.composite
def nodes(draw: st.DrawFn) -> NodeInfo:
    cpu = draw(st.sampled_from([2.0, 4.0]))
    gpus = draw(st.sampled_from([{}, {"nvidia.com/gpu": 8.0}]))
    return node(draw(st.sampled_from(NODE_NAMES)), cpu=cpu, **gpus)


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    number = draw(st.integers(0, 7))
    # Pods of two UIDs share each name: one was created after the other had gone.
    name, created = f"p{number // 2}", T0 + number
    owner, owner_uid = draw(st.sampled_from(CONTROLLERS))
    requests = {
        kind: draw(AMOUNTS) for kind in draw(st.sets(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods"])))
    }
    return pod(
        name,
        uid=f"u{number}",
        created=created,
        node=draw(st.sampled_from(["", *NODE_NAMES])),
        owner=owner,
        owner_uid=owner_uid,
        requests=requests,
        labels=draw(st.sampled_from([{}, {"pod-template-hash": "7d9f"}])),
        qos=draw(st.sampled_from(QosClass)),
        phase=draw(st.sampled_from(PodPhase)),
        terminating=draw(st.booleans()),
    )


replica_sets = st.builds(
    lambda r, revision, desired: replace(r, revision=revision, desired_replicas=desired),
    st.sampled_from(REPLICA_SETS),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, 2, 4]),
)
jobs = st.sampled_from(JOBS)
times = st.sampled_from([T0 - 1, T0 + 100, T0 + 3599, T0 + 3600, T0 + 3601, T0 + 5400, T0 + 9000])


@dataclass(frozen=True)
class Step:
    method: str
    arguments: tuple[Any, ...]

    def on(self, state: ClusterState) -> list[Change]:
        changes: list[Change] = getattr(state, self.method)(*self.arguments)
        return changes


def step(method: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.builds(lambda *values: Step(method, values), *arguments)


steps = st.one_of(
    step("put_pod", pods()),
    step("put_pod", pods()),
    step("delete_pod", st.integers(0, 7).map(lambda n: f"u{n}")),
    step("put_node", nodes()),
    step("delete_node", st.sampled_from(NODE_NAMES)),
    step("put_replica_set", replica_sets),
    step("delete_replica_set", st.sampled_from([r.uid for r in REPLICA_SETS])),
    step("put_job", jobs),
    step("delete_job", st.sampled_from([j.uid for j in JOBS])),
    step("expire", times),
    step("replace", st.just(Kind.PODS), st.lists(pods(), max_size=4)),
    step("replace", st.just(Kind.NODES), st.lists(nodes(), max_size=3)),
    step("replace", st.just(Kind.REPLICA_SETS), st.lists(replica_sets, max_size=4)),
    step("replace", st.just(Kind.JOBS), st.lists(jobs, max_size=2)),
)


def by_name(state: ClusterState) -> dict[str, Any]:
    """The tables without the numbers of rows, columns and services, which depend on the order of arrival."""
    tables = {"capacity": state.capacity, "allocatable": state.allocatable, "requested": state.requested}
    return {
        "rows": {
            name: (
                bool(state.alive[row]),
                state.nodes[row],
                state.pod_count[row],
                state.requested_nonzero[row].tolist(),
                state.qos_pods[row].tolist(),
                {
                    (t, kind): v
                    for t, table in tables.items()
                    for kind, c in state.kinds.items()
                    if (v := table[row, c])
                },
            )
            for name, row in state.row_of.items()
        },
        "seats": {
            uid: (state.names[seat.node], state.services[seat.service], seat.weight)
            for uid, seat in state.seat_of.items()
        },
        "replicas": {key: n for key, i in state.service_of.items() if (n := state.replicas(i))},
        "pods": state.pods,
        "names": {(p.namespace, p.name): state.find_pod(p.namespace, p.name) for p in state.pods.values()},
    }


def rebuilt(state: ClusterState) -> ClusterState:
    fresh = ClusterState(now=state.now)
    fresh.put_node(node("gone", **dict.fromkeys(state.kinds, 0.0)))  # a resource counts once a node has named it
    fresh.delete_node("gone")
    fresh.replace(Kind.JOBS, list(state.jobs.values()))
    fresh.replace(Kind.REPLICA_SETS, list(state.replica_sets.values()))
    fresh.replace(Kind.NODES, [n for n in state.nodes if n is not None])
    fresh.replace(Kind.PODS, list(state.pods.values()))
    return fresh


def wanted_deployments(state: ClusterState) -> dict[str, Any]:
    """A service that never had a pod has no number, so that nobody can ask for its replicas."""
    view = by_name(state)
    present = {state.service_key(p) for p in state.pods.values()}
    return {**view, "replicas": {key: n for key, n in view["replicas"].items() if key in present}}


@pytest.mark.parametrize("kept_empty", [services_module.KEPT_EMPTY, 0])
@given(sequence=st.lists(steps, max_size=30))
def test_any_sequence_of_events_ends_in_the_tables_of_what_is_there(kept_empty: int, sequence: list[Step]) -> None:
    """Also where numbers of services are used again as soon as these have no pods."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services_module, "KEPT_EMPTY", kept_empty)
        state = ClusterState(now=T0)
        listener = Listener(state)
        for one in sequence:
            listener.hear(one.on(state))
            listener.check()
        assert self_check(state) == ()
        assert wanted_deployments(state) == wanted_deployments(rebuilt(state))


@given(st.lists(steps, max_size=20))
def test_a_list_of_what_is_there_changes_nothing(sequence: list[Step]) -> None:
    state = ClusterState(now=T0)
    for one in sequence:
        one.on(state)
    assert state.replace(Kind.NODES, [n for n in state.nodes if n is not None]) == []
    assert state.replace(Kind.PODS, list(state.pods.values())) == []
    assert state.replace(Kind.REPLICA_SETS, list(state.replica_sets.values())) == []
    assert state.replace(Kind.JOBS, list(state.jobs.values())) == []
    assert [change for one in list(state.pods.values()) for change in state.put_pod(one)] == []
    assert [change for r in list(state.replica_sets.values()) for change in state.put_replica_set(r)] == []
    assert [change for j in list(state.jobs.values()) for change in state.put_job(j)] == []
