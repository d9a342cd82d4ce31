"""Quotas of tenants on a real API server: lent, taken back for a gang, by the process that lives, and never passed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.clusters.elastic_quotas import create_quota, delete_quotas, elastic_quota, install_elastic_quotas
from testing.clusters.own_nodes import (
    assert_settled,
    bound,
    condition,
    end_terminating,
    group,
    groups,
    member,
    nodes_of,
    our_node,
    our_pod,
)
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started

OWNER, BORROWER = "default", "borrower"
N_CORES, N_MEMBERS = 32, 16
TENANTS = {"grace": "1s"}


@pytest.fixture(scope="module")
def api(module_plane: ControlPlane) -> Iterator[Api]:
    with Api(module_plane) as api, ClusterWriter(module_plane) as writer:
        install_elastic_quotas(api)
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": BORROWER}})
        yield api


@pytest.fixture
def quotas(api: Api, plane: ControlPlane) -> Iterator[Api]:
    """To create them; afterwards there are none."""
    yield api
    delete_quotas(api, OWNER, BORROWER)


def borrow_everything(writer: ClusterWriter, process: ScorerProcess) -> None:
    """Each of two tenants is guaranteed half of the cores, and one has them all."""
    writer.create_many(our_pod(f"borrower-{i}", cpu="1", namespace=BORROWER) for i in range(N_CORES + 4))
    assert eventually(lambda: bound(writer, "borrower") == N_CORES), process.log


def placed_with(writer: ClusterWriter) -> bool:
    """The whole gang has nodes; pods that have to go do go."""
    end_terminating(writer)
    return bound(writer, "train") == N_MEMBERS


def two_halves(api: Api, writer: ClusterWriter) -> None:
    writer.create_many(our_node(f"node-{i}", cpu=8) for i in range(N_CORES // 8))
    for tenant in (OWNER, BORROWER):
        create_quota(api, elastic_quota(tenant, {"cpu": str(N_CORES // 2)}))


@pytest.mark.parametrize("evicted", [1, N_MEMBERS], ids=["with the first victim", "with the last victim"])
def test_a_gang_gets_it_back_from_who_takes_over(
    plane: ControlPlane, writer: ClusterWriter, quotas: Api, start: Started, evicted: int
) -> None:
    """kill -9 while its victims are on their way out, all or a few of them: who takes over waits for those to end."""
    two_halves(quotas, writer)
    first = start(tenants=TENANTS)
    borrow_everything(writer, first)
    with groups(plane) as those:
        those.create(group("train", members=N_MEMBERS))
        writer.create_many(member("train", number) for number in range(N_MEMBERS))
        assert eventually(lambda: len(going(writer)) >= evicted), first.log[-3000:]
        first.kill()
        second = start(tenants=TENANTS)
        assert len(going(writer)) >= evicted, "no kubelet ends them but this test"
        assert eventually(lambda: placed_with(writer)), (going(writer), second.log[-3000:])
        assert_settled(writer, [second])
        assert len(nodes_of(writer, "borrower")) == N_CORES + 4 - N_MEMBERS, "as many were evicted as it has members"
        assert bound(writer, "borrower") == N_CORES - N_MEMBERS


def test_a_max_holds_across_a_restart(writer: ClusterWriter, quotas: Api, start: Started) -> None:
    writer.create_many(our_node(f"node-{i}", cpu=8) for i in range(2))
    create_quota(quotas, elastic_quota(BORROWER, {"cpu": "4"}, {"cpu": "6"}))
    first = start(tenants=TENANTS)
    writer.create_many(our_pod(f"borrower-{i}", cpu="1", namespace=BORROWER) for i in range(5))
    assert eventually(lambda: bound(writer, "borrower") == 4), "no other tenant lends anything"
    first.kill()
    create_quota(quotas, elastic_quota(OWNER, {"cpu": "8"}))
    second = start(tenants=TENANTS)
    writer.create_many(our_pod(f"borrower-{i}", cpu="1", namespace=BORROWER) for i in range(5, 10))
    writer.create(our_pod("free", cpu="1", namespace="kube-public"))
    assert eventually(lambda: bound(writer, "borrower") == 6 and bound(writer, "free") == 1), second.log
    assert_settled(writer, [second])
    waiting = writer.list_all("pods", field_selector="spec.nodeName=")
    assert len(waiting) == 4
    assert all("tenant borrower may use 6 cores at most and uses 6 cores" in condition(one)[1] for one in waiting)
    name = next(name for name, node in nodes_of(writer, "borrower").items() if node)
    writer.delete_many(one for one in writer.list_all("pods") if one["metadata"]["name"] == name)
    assert eventually(lambda: bound(writer, "borrower") == 6), "another pod takes its place"


def going(writer: ClusterWriter) -> set[str]:
    return {one["metadata"]["name"] for one in writer.list_all("pods") if "deletionTimestamp" in one["metadata"]}
