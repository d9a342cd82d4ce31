"""Conditions and events on a real API server: as users and autoscalers look for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from kube.client.kubernetes_client import api_client
from kube.session.api_session import ApiSession
from scheduler.pod_reports import Reports
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually
from tests.scheduler.binding.made_up import pod_of

NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running, ClusterWriter(running) as writer:
        writer.create(node("node-1"))
        yield running


@pytest.fixture
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writer:
        yield writer
        writer.delete_many(writer.list_all("pods"))


@pytest.fixture
def reports(plane: ControlPlane) -> Iterator[Reports]:
    session = ApiSession(api_client(plane.kubeconfig))
    session.start()
    reports = Reports(session, instance="replica-0")
    reports.start()
    yield reports
    reports.stop()
    session.stop()


def condition(writer: ClusterWriter, created: Manifest) -> dict[str, Any]:
    """PodScheduled of the pod; {} = it has none."""
    for one in writer.list_all("pods"):
        if one["metadata"]["uid"] == created["metadata"]["uid"]:
            conditions = {c["type"]: c for c in one["status"].get("conditions", [])}
            return dict(conditions.get("PodScheduled", {}))
    raise LookupError("the pod is gone")


def events(plane: ControlPlane, created: Manifest) -> dict[str, str]:
    """Reason -> message, as kubectl describe finds them."""
    with urllib3.PoolManager(ca_certs=str(plane.ca_file)) as pool:
        answer = pool.request(
            "GET",
            f"{plane.url}/api/v1/namespaces/default/events",
            fields={"fieldSelector": f"involvedObject.kind=Pod,involvedObject.uid={created['metadata']['uid']}"},
            headers={"Authorization": f"Bearer {plane.token}"},
        )
        return {item["reason"]: item["message"] for item in json.loads(answer.data)["items"]}


def test_a_pod_that_waits_by_choice_is_not_unschedulable(
    plane: ControlPlane, writer: ClusterWriter, reports: Reports
) -> None:
    """Cluster autoscaler and Karpenter ask for that reason."""
    created = writer.create(pod("report-1"))
    reports.paused(pod_of(created), "starts 02:40", by="Valley")
    assert eventually(lambda: condition(writer, created).get("reason") == "WaitingForValley")
    told = condition(writer, created)
    assert (told["status"], told["message"]) == ("False", "starts 02:40")
    reports.failed(pod_of(created), NO_ROOM)
    assert eventually(lambda: condition(writer, created)["reason"] == "Unschedulable")
    assert eventually(lambda: "FailedScheduling" in events(plane, created))
    assert events(plane, created) == {"FailedScheduling": NO_ROOM}
