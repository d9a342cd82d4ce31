"""Events of decisions on a real API server: posted with one right, and found with the pod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import urllib3

from kube.client.kubernetes_client import api_client
from kube.events.event_recorder import EventFigures, api_server_post
from placement.decisions.decision_events import EventSink
from testing.servers.cluster_objects import ClusterWriter, Manifest, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.placement.decisions.made_up import advice, binding

RIGHT = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}
RBAC = "rbac.authorization.k8s.io"


def events_of(plane: ControlPlane, uid: str) -> list[Manifest]:
    """As kubectl describe asks for them: v1 Events by the object they are about."""
    with urllib3.PoolManager(ca_certs=str(plane.ca_file)) as pool:
        answer = pool.request(
            "GET",
            f"{plane.url}/api/v1/namespaces/default/events",
            fields={"fieldSelector": f"involvedObject.kind=Pod,involvedObject.uid={uid}"},
            headers={"Authorization": f"Bearer {plane.token}"},
        )
        return list(json.loads(answer.data)["items"])


def post(kubeconfig: Path, created: Manifest, **changes: Any) -> EventFigures:
    """One decision about a pod as an event."""
    name, uid = created["metadata"]["name"], created["metadata"]["uid"]
    sink = EventSink(
        api_server_post(api_client(kubeconfig)),
        controller="forecast-scheduler.io/extender",
        instance="forecast-scheduler-0",
    )
    sink.start()
    sink.take(binding(advice({"n1": 5, "n7": 2}, pod=f"default/{name}", uid=uid, **changes), "n1"))
    sink.stop(timeout=20)
    return sink.figures


def test_one_right_is_needed_and_enough(plane: ControlPlane, writer: ClusterWriter) -> None:
    kubeconfig = plane.write_kubeconfig("nobody", plane.powerless_token)
    created = writer.create(pod("cart-2"))
    assert post(kubeconfig, created).failed == 1
    metadata = {"name": "forecast-scheduler-events"}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": [RIGHT]}
    granted = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": metadata["name"]},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "nobody"}],
    }
    writer.create(role)
    writer.create(granted)
    assert eventually(lambda: post(kubeconfig, created).posted == 1)  # the authorizer watches roles
    event = events_of(plane, created["metadata"]["uid"])[0]
    assert event["reason"] == "ForecastScheduled" and event["type"] == "Normal"
    assert event["message"].startswith("node n1 of 2: predicted peak 61 % of capacity; 3 points ahead of n7; model ")
    assert event["involvedObject"]["name"] == "cart-2"
    assert event["reportingComponent"] == "forecast-scheduler.io/extender"
