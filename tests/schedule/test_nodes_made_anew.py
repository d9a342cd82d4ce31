"""A node goes while pods are on their way to it, and another one of its name comes: smaller, elsewhere, tainted, or
without cards. The API server binds to any name, so what is still to be bound must not be."""

from __future__ import annotations

from typing import Any

import pytest

from testing.clusters.own_nodes import (
    assert_settled,
    bound,
    our_node,
    our_pod,
)
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.waiting import eventually
from tests.schedule.conftest import Started

IN_FLIGHT = 2
SLOWLY = {"bindings_in_flight": IN_FLIGHT}
TAINT = {"key": "new", "value": "", "effect": "NoSchedule"}


def smaller() -> Manifest:
    return our_node("node", cpu=1)


def tainted() -> Manifest:
    made = our_node("node", cpu=8)
    return made | {"spec": {"taints": [TAINT]}}


def elsewhere() -> Manifest:
    return our_node("node", cpu=8, labels={"zone": "b"})


def of_others() -> Manifest:
    made = our_node("node", cpu=8)
    made["metadata"]["labels"]["forecast-scheduler.io/domain"] = "others"
    return made


LONGER = [pytest.param(anew, marks=pytest.mark.long) for anew in (tainted, elsewhere, of_others)]


@pytest.mark.parametrize("anew", [smaller, *LONGER])
def test_pods_on_their_way_are_not_bound_to_another_node_of_the_name(
    writer: ClusterWriter, start: Started, proxy: TcpProxy, anew: Any
) -> None:
    n_pods = 40
    writer.create(our_node("node", cpu=8, labels={"zone": "a"}))
    process = start(url=proxy.url, **SLOWLY)
    proxy.lag_new_connections(0.3)  # so that a busy machine makes pods faster than it binds them
    pods = [our_pod(f"move-{number}", cpu="200m") for number in range(n_pods)]
    for made in pods if anew is elsewhere else ():
        made["spec"]["nodeSelector"] = {"zone": "a"}
    writer.create_many(pods)
    assert eventually(lambda: process.metric("forecast_assumed_pods") > n_pods / 2), process.log
    _replace(writer, anew())
    at_once = {one["metadata"]["name"] for one in _there(writer)}
    writer.create(our_node("stays", cpu=8, labels={"zone": "a"}))
    n_left = len(writer.list_all("pods"))
    assert eventually(lambda: bound(writer) == n_left), process.log[-3000:]
    there = _there(writer)
    wrongly = [one for one in there if one["metadata"]["name"] not in at_once]
    if anew is smaller:
        assert sum(200 for _ in there) <= 1000 + 200 * IN_FLIGHT
    else:
        assert len(wrongly) <= IN_FLIGHT, "only what had been sent may arrive"
    writer.delete_many(there if anew is not smaller else there[5:])  # as its kubelet refuses them
    assert all(assert_settled(writer, [process]).values())


def _there(writer: ClusterWriter) -> list[Manifest]:
    return writer.list_all("pods", field_selector="spec.nodeName=node")


def _replace(writer: ClusterWriter, anew: Manifest) -> int:
    """Another node of the name, and none of the pods of the first one; returns how many of these there were."""
    writer.delete(next(one for one in writer.list_all("nodes") if one["metadata"]["name"] == "node"))
    gone = _there(writer)
    writer.delete_many(gone)
    writer.create(anew)
    return len(gone)
