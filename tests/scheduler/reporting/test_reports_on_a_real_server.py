"""Conditions and events on a real API server: as users and autoscalers look for them, and with no right too many."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from kube.client.kubernetes_client import api_client
from kube.session.api_session import ApiSession
from scheduler.binding.default_binder import DefaultBinder
from scheduler.reporting.reports import Reports
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
def running() -> Iterator[Callable[[Path], tuple[ApiSession, Reports]]]:
    """Starts a session and reports for a kubeconfig."""
    started: list[tuple[ApiSession, Reports]] = []

    def of(kubeconfig: Path) -> tuple[ApiSession, Reports]:
        session = ApiSession(api_client(kubeconfig))
        session.start()
        reports = Reports(session, instance="replica-0")
        reports.start()
        started.append((session, reports))
        return session, reports

    yield of
    for session, reports in started:
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


def test_a_pod_that_waits_says_why_until_it_is_bound(
    plane: ControlPlane, writer: ClusterWriter, running: Callable[[Path], tuple[ApiSession, Reports]]
) -> None:
    session, reports = running(plane.kubeconfig)
    created = writer.create(
        pod("cart-1") | {"status": {"conditions": [{"type": "example.org/Other", "status": "True"}]}}
    )
    ours = pod_of(created)
    reports.failed(ours, NO_ROOM)
    assert eventually(lambda: condition(writer, created).get("message") == NO_ROOM)
    first = condition(writer, created)
    assert (first["status"], first["reason"]) == ("False", "Unschedulable") and first["lastTransitionTime"]
    reports.failed(ours, "0/2 nodes are available: 2 Insufficient cpu.")
    assert eventually(lambda: condition(writer, created)["message"].startswith("0/2"))
    assert condition(writer, created)["lastTransitionTime"] == first["lastTransitionTime"]
    assert session.submit(DefaultBinder(session).bind(ours, "node-1")).result(60).is_success
    reports.scheduled(ours, "node-1")
    assert condition(writer, created)["status"] == "True"
    assert eventually(lambda: "Scheduled" in events(plane, created) and "FailedScheduling" in events(plane, created))
    assert events(plane, created)["Scheduled"] == "Successfully assigned default/cart-1 to node-1"
    (stored,) = writer.list_all("pods")
    assert {"example.org/Other", "PodScheduled"} <= {c["type"] for c in stored["status"]["conditions"]}


def test_a_pod_that_waits_by_choice_is_not_unschedulable(
    plane: ControlPlane, writer: ClusterWriter, running: Callable[[Path], tuple[ApiSession, Reports]]
) -> None:
    """Cluster autoscaler and Karpenter ask for that reason."""
    _, reports = running(plane.kubeconfig)
    created = writer.create(pod("report-1"))
    reports.paused(pod_of(created), "starts 02:40", by="Valley")
    assert eventually(lambda: condition(writer, created).get("reason") == "WaitingForValley")
    told = condition(writer, created)
    assert (told["status"], told["message"]) == ("False", "starts 02:40")
    reports.failed(pod_of(created), NO_ROOM)
    assert eventually(lambda: condition(writer, created)["reason"] == "Unschedulable")
    assert eventually(lambda: "FailedScheduling" in events(plane, created))
    assert events(plane, created) == {"FailedScheduling": NO_ROOM}


RIGHTS = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]


def test_these_rights_are_needed_and_enough(
    plane: ControlPlane, writer: ClusterWriter, running: Callable[[Path], tuple[ApiSession, Reports]]
) -> None:
    session, reports = running(plane.write_kubeconfig("nobody", plane.powerless_token))
    created = writer.create(pod("cart-1"))
    ours = pod_of(created)
    reports.failed(ours, NO_ROOM)
    assert eventually(lambda: reports.conditions.figures.failed == 1 and reports.events.figures.failed == 1)
    rbac, metadata = "rbac.authorization.k8s.io", {"name": "forecast-scheduler-loops"}
    writer.create({"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": RIGHTS})
    writer.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "nobody"}],
        }
    )

    def written() -> bool:  # the authorizer watches roles: it takes a moment
        reports.failed(ours, NO_ROOM)
        return reports.conditions.figures.written >= 1

    assert eventually(written)
    binder = DefaultBinder(session)
    assert session.submit(binder.bind(ours, "node-1")).result(60).is_success
    assert session.submit(binder.look(ours, "node-1")).result(60).is_success
    reports.scheduled(ours, "node-1")
    assert eventually(lambda: "Scheduled" in events(plane, created))
