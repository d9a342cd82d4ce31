"""What makes the rebalancer use every right that it is granted: a plan with moves of pods of each kind of owner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from rebalancer.execution.plan_wire import MoveSpec, PlanMode, PlanPhase, PlanSpec, Trigger
from rebalancer.plan_book import unforeseen_name
from testing.clusters.own_nodes import QUICK_LEASE
from testing.processes.scorer_process import settings_of
from testing.servers.applying import Applier, NotApplied
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, running
from testing.servers.shipped_rights import Account
from testing.waiting import eventually
from tests.deploy.rights import Installed

SETTINGS: Final[dict[str, Any]] = settings_of() | {
    "rebalance": {
        "mode": "on",
        "serving": {"kubernetes_auth": True, "metrics_open": True},
        "leader_election": QUICK_LEASE,
        "cost": {"least_age": 0},
        "unforeseen": {"per_day": 10},
        # Any load counts as flat, so that now is one of its lowest hours.
        "window": {"flat_share": 0.99, "flat_hours": 24, "freeze": 0, "peak_hours": []},
        "execution": {"parallel": 10, "pin": 0, "retry": "1s", "ready_deadline": "20s", "keep_plans": 1},
    }
}
PLANS: Final = "/apis/forecast-scheduler.io/v1alpha1/rebalanceplans"

_FROM, _TO = "at-work-1", "at-work-2"
_BY_SURGE: Final = {"forecast-scheduler.io/move-by-surge": "true"}
_OWNERS: Final = {
    "web": ("apps/v1", "ReplicaSet", "web-54b8"),
    "single": ("apps/v1", "ReplicaSet", "single-54b8"),
    "bare": ("apps/v1", "ReplicaSet", "bare"),
    "db": ("apps/v1", "StatefulSet", "db"),
    "old": ("v1", "ReplicationController", "old"),
}
"""By service; those that are of a Deployment have the hash of its ReplicaSet."""

_KINDS: Final = {"web": "Deployment", "single": "Deployment"}


def prepare(installed: Installed, writer: ClusterWriter) -> None:
    """Pods that can be moved, a plan that moves one of each service, and two plans that are over."""
    writer.create_many(node(name) for name in (_FROM, _TO))
    writer.create_many([_deployment("web", 2), _deployment("single", 1)])
    moves = []
    for service in _OWNERS:
        made = [writer.create(_pod(service, number)) for number in range(1 if service == "single" else 2)]
        for one in made:
            _make_ready(writer, one)
        moves.append(_move(service, made[0]))
    now = datetime.now(UTC)
    _create_plan(installed, PlanSpec(now, Trigger.UNFORESEEN, PlanMode.ON, tuple(moves)), PlanPhase.PLANNED)
    for number in (1, 2):
        spec = PlanSpec(now - timedelta(days=number), Trigger.UNFORESEEN, PlanMode.SHADOW)
        _create_plan(installed, spec, PlanPhase.REPORTED)


def replace_one(writer: ClusterWriter, seconds: float) -> None:
    """As a controller does it, once a pod of `bare` goes: its replacement waits for a node."""

    def is_going() -> bool:
        first = [one for one in writer.list_all("pods") if one["metadata"]["name"] == "bare-0"]
        return not first or "deletionTimestamp" in first[0]["metadata"]

    if eventually(is_going, seconds):
        made = _pod("bare", 7)
        del made["spec"]["nodeName"]
        writer.create(made)


def clear(installed: Installed, writer: ClusterWriter) -> None:
    """Take away what `prepare` and the rebalancer have made, but for pods and nodes."""
    for name in ("web", "single"):
        installed.applier.delete({"kind": "Deployment"} | _named("apps/v1", name))
    for one in installed.applier.send("GET", PLANS).get("items", []):
        try:
            installed.applier.send("DELETE", f"{PLANS}/{one['metadata']['name']}", {}, kind="application/json")
        except NotApplied as error:
            if error.status != 404:
                raise


def _named(version: str, name: str) -> Manifest:
    return {"apiVersion": version, "metadata": {"namespace": "default", "name": name}}


def _deployment(name: str, replicas: int) -> Manifest:
    container = {"name": "main", "image": "app:1"}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "default", "name": name, "annotations": _BY_SURGE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _pod(service: str, number: int) -> Manifest:
    version, kind, name = _OWNERS[service]
    labels = {"app": service}
    if service in _KINDS:
        labels["pod-template-hash"] = name.rpartition("-")[2]
    return pod(
        f"{service}-{number}",
        node=_FROM,
        owner={"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"},
        labels=labels,
        annotations=_BY_SURGE if service == "single" else None,
    )


def _make_ready(writer: ClusterWriter, made: Manifest) -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    writer.patch_status({"kind": "Pod"} | made, running() | {"conditions": [ready]})


def _move(service: str, made: Manifest) -> MoveSpec:
    metadata = made["metadata"]
    return MoveSpec(
        "default",
        metadata["name"],
        metadata["uid"],
        f"{_KINDS.get(service, _OWNERS[service][1])}/{service}",
        _FROM,
        _TO,
        surge=service == "single",
    )


def _create_plan(installed: Installed, spec: PlanSpec, phase: PlanPhase) -> None:
    """As the rebalancer itself: nobody else may."""
    name = unforeseen_name(spec.created_at)
    made = {
        "apiVersion": "forecast-scheduler.io/v1alpha1",
        "kind": "RebalancePlan",
        "metadata": {"name": name},
        "spec": msgspec.to_builtins(spec),
    }
    account = Account(installed.plane.url, installed.token("forecast-scheduler-rebalancer"), installed.plane.ca_file)
    merge = "application/merge-patch+json"
    with Applier(account) as rebalancer:
        rebalancer.send("POST", PLANS, made, kind="application/json")
        rebalancer.send("PATCH", f"{PLANS}/{name}/status", {"status": {"phase": phase.value}}, kind=merge)
