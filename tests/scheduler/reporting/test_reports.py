"""Conditions and events that reports of a pod send."""

from __future__ import annotations

import json
from typing import Any

from scheduler.pod_reports import Reports
from testing.waiting import eventually
from tests.scheduler.binding.made_up import Scripted, pod_info, scripted_server, session_to


def test_a_pod_that_waits_by_choice_is_not_unschedulable() -> None:
    """Cluster autoscaler and Karpenter ask for that reason."""
    asked: list[tuple[str, dict[str, Any]]] = []

    def script(method: str, path: str, body: bytes, headers: dict[str, str]) -> Scripted:
        asked.append((path, json.loads(body)))
        return Scripted(200)

    with scripted_server(script) as url, session_to(url) as session:
        reports = Reports(session, instance="replica-0")
        reports.start()
        reports.paused(pod_info("cart-1"), "starts 02:40", by="Valley")
        assert eventually(lambda: len(asked) == 1)
        reports.failed(pod_info("cart-1"), "no room")
        assert eventually(lambda: len(asked) == 3)
        reports.stop()
    conditions = [one for path, body in asked if path.endswith("/status") for one in body["status"]["conditions"]]
    assert [(one["type"], one["status"], one["reason"], one["message"]) for one in conditions] == [
        ("PodScheduled", "False", "WaitingForValley", "starts 02:40"),
        ("PodScheduled", "False", "Unschedulable", "no room"),
    ]
    assert [body["reason"] for path, body in asked if path.endswith("/events")] == ["FailedScheduling"]
