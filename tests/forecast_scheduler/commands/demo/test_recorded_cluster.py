"""A recorded cluster as kubectl would export it reads back as the cluster that was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from base.errors import InputError
from cluster.predicted.node_capacity import KnownCapacities
from cluster.tables.cluster_file import load_into, parse_cluster
from cluster.tables.self_check import self_check
from cluster.tables.state import ClusterState
from forecast.history import History, PodUsage
from forecast.service_key import ServiceKey
from forecast_scheduler.commands.demo.evening_scorer import cluster_at
from tests.synthetic import synthetic_history

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Rollout", "Pod", "ReplicaSet")


def history() -> History:
    made = synthetic_history(n_services=len(KINDS), n_days=2, n_nodes=3)
    capacity = made.capacity.copy()
    capacity[1] = [4.0, 2.0**34, 2e8, np.nan, 7.4]
    allocatable = made.allocatable.copy()
    allocatable[2] = np.nan
    services = tuple(ServiceKey("shop", kind, f"{kind.lower()}-7d9f8b6c5d" if kind == "Pod" else f"a-{kind.lower()}")
                     for kind in KINDS)  # fmt: skip
    return replace(made, capacity=capacity, allocatable=allocatable, services=services)


def pods(known: History) -> PodUsage:
    """One pod of each service, and one that was there on the day before only."""
    n = len(KINDS) + 1
    names = [f"shop/{service.name}" if service.kind == "Pod" else f"shop/{service.name}-{i}"
             for i, service in enumerate(known.services)]  # fmt: skip
    present = np.ones((n, 2, 48), dtype=np.float32)
    present[-1, 1] = 0
    requests = np.array([[0.25 + i, 2.0**30 * (i + 1)] for i in range(n)])
    requests[1] = np.nan
    return PodUsage(
        days=known.days,
        services=known.services,
        pods=(*names, "shop/gone-1"),
        service=np.array([*range(len(KINDS)), 0]),
        requests=requests,
        usage=np.zeros((n, 5, 2, 48), dtype=np.float32),
        present=present,
        node=np.arange(n) % 3,
        row=np.arange(n),
    )


MOMENT = datetime(2026, 5, 5, 17, tzinfo=UTC)


def state_at(moment: datetime) -> ClusterState:
    known = history()
    objects = parse_cluster(json.dumps(cluster_at(known, pods(known), moment)).encode())
    state = ClusterState(now=moment.timestamp())
    load_into(state, objects)
    return state


def test_pods_requests_and_capacities_are_those_recorded() -> None:
    known, state = history(), state_at(MOMENT)
    found = {str(state.services[seat.service]): state.names[seat.node] for seat in state.seat_of.values()}
    assert found == {str(service): f"node-{i % 3}" for i, service in enumerate(known.services)}
    weights = {state.services[seat.service].kind: seat.weight for seat in state.seat_of.values()}
    assert weights == {kind: float(kind != "DaemonSet") for kind in KINDS}
    assert self_check(state) == ()
    assert len(state_at(MOMENT - timedelta(days=1)).pods) == len(state.pods) + 1
    by_kind = {state.services[seat.service].kind: state.pods[uid] for uid, seat in state.seat_of.items()}
    assert by_kind["Deployment"].requests == {"cpu": 0.25, "memory": 2.0**30}
    assert by_kind["StatefulSet"].requests.get("cpu", 0.0) == 0.0  # unknown
    for row, name in enumerate(known.nodes):
        node = state.nodes[state.row_of[name]]
        assert node is not None
        assert node.ready
        expected = np.where(np.isfinite(known.capacity[row]), known.capacity[row], np.nan)
        np.testing.assert_allclose(KnownCapacities(None).of(node), expected, rtol=0.1)
        if np.isfinite(known.allocatable[row]).all():
            assert node.allocatable["cpu"] == known.allocatable[row, 0]
        else:
            assert node.allocatable["cpu"] == node.capacity["cpu"]


def test_a_day_that_is_not_in_the_history_is_refused() -> None:
    with pytest.raises(InputError, match="2026-06-01"):
        cluster_at(history(), pods(history()), datetime(2026, 6, 1, tzinfo=UTC))
