"""Pods that played kubelets start are Ready, as their controllers and budgets read it; finished ones are not."""

from __future__ import annotations

from typing import Any

from testing.servers.kubelets import RUN_SECONDS, Kubelets

SCHEDULED = {"type": "PodScheduled", "status": "True"}


def conditions(status: Any) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status["conditions"]}


def test_a_pod_is_ready_while_it_runs_and_keeps_the_conditions_of_others() -> None:
    pod = {
        "metadata": {"namespace": "shop", "name": "p", "uid": "u", "annotations": {RUN_SECONDS: "10"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
        "status": {"phase": "Pending", "conditions": [SCHEDULED]},
    }
    kubelets = Kubelets("")
    kubelets.see("ADDED", pod, 100.0)
    [started] = kubelets.due(100.0)
    assert started.status is not None and started.status["containerStatuses"][0]["ready"]
    assert conditions(started.status) == {"PodScheduled": "True", "Ready": "True", "ContainersReady": "True"}
    kubelets.see("MODIFIED", pod | {"status": started.status}, 101.0)
    [ended] = kubelets.due(110.0)
    assert ended.status is not None and not ended.status["containerStatuses"][0]["ready"]
    assert conditions(ended.status) == {"PodScheduled": "True", "Ready": "False", "ContainersReady": "False"}
