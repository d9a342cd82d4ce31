"""What a running scheduler shows of tenants: sentences on pods, the report, the page, metrics."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from forecast_scheduler.cli import run
from testing.clusters.elastic_quotas import create_quota, delete_quotas, elastic_quota, install_elastic_quotas
from testing.clusters.own_nodes import bound, condition, our_node, our_pod
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started

OWNER, BORROWER = "default", "borrower"


@pytest.fixture
def quotas(plane: ControlPlane) -> Iterator[Api]:
    with Api(plane) as api, ClusterWriter(plane) as writer:
        install_elastic_quotas(api)
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": BORROWER}})
        yield api
        delete_quotas(api, OWNER, BORROWER)


def test_a_pod_says_why_it_waits_and_the_service_shows_who_lends(
    writer: ClusterWriter, quotas: Api, start: Started, capfd: pytest.CaptureFixture[str]
) -> None:
    writer.create_many(our_node(f"node-{i}", cpu=8) for i in range(2))
    create_quota(quotas, elastic_quota(OWNER, {"cpu": "10"}))
    create_quota(quotas, elastic_quota(BORROWER, {"cpu": "2"}, {"cpu": "6"}))
    process = start()
    writer.create_many(our_pod(f"borrower-{i}", cpu="1", namespace=BORROWER) for i in range(7))
    assert eventually(lambda: bound(writer, "borrower") == 6), process.log

    def sentences() -> list[str]:
        return [condition(one)[1] for one in writer.list_all("pods", field_selector="spec.nodeName=")]

    expected = "tenant borrower may use 6 cores at most and uses 6 cores, the pod asks for 1 core"
    assert eventually(lambda: sentences() == [expected]), sentences()

    found = process.get("/v1/tenants?hours=0")
    amounts = {one["tenant"]: one["resources"][0] for one in found["tenants"]}
    assert (amounts[BORROWER]["used"], amounts[BORROWER]["borrowed"], amounts[BORROWER]["waiting"]) == (6, 4, 1)
    assert (amounts[OWNER]["lent"], amounts[OWNER]["owed"]) == (4, 4)
    assert process.metric('forecast_tenant_borrowed{resource="cpu",tenant="borrower"}') == 4
    assert process.metric('forecast_tenant_waiting_pods{tenant="borrower"}') == 1
    with urllib.request.urlopen(f"{process.url}/tenants") as page:
        assert "borrower" in page.read().decode()
    capfd.readouterr()
    assert run(["tenants", "--server", process.url, "--output", "json"]) == 0
    assert [one["tenant"] for one in json.loads(capfd.readouterr().out)["tenants"]] == [BORROWER, OWNER]
