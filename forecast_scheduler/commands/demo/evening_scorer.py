"""The last part of the demo: a scorer on the cluster as it was recorded, on the evening of the history's last day,
made from nodes and pods as `kubectl get -o json` would have exported them.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from base.arrays import Floats
from base.errors import InputError
from base.progress import Progress
from cluster.predicted.node_capacity import CAPACITY_ANNOTATION
from forecast.fit import fit
from forecast.history import History, PodUsage
from forecast.model_artefact import artefact_of
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from forecast_scheduler.commands.model_registry import open_registry
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, open_scorer
from forecast_scheduler.commands.serving_access import check_exposed, hosts_of
from forecast_scheduler.commands.shell import write_text
from forecast_scheduler.settings.document import Settings
from scorer.service.app import create_app
from serving.server import ScorerServer
from trainer.history.files import HistoryFiles

# A recorded cluster at one moment, as `kubectl get nodes,pods,replicasets,jobs -A -o json` would have exported it.
#
# So that scorer and explain can be tried on a history without a cluster. What a history does not know (labels, taints,
# images) is left out.

_TIME = "%Y-%m-%dT%H:%M:%SZ"

_HOUR = 17
"""Before the evening peak, and with a day of measurements to look back on."""


def cluster_at(history: History, pods: PodUsage, moment: datetime) -> dict[str, Any]:
    """The List of objects. pods: must hold the day of `moment`; moment: aware."""
    day, slot = history.calendar.day_and_slot(moment)
    if day not in pods.days:
        raise InputError(f"pod usage lacks {day}: read it from the history for that day")
    there = np.flatnonzero((pods.present[:, pods.days.index(day), slot] > 0) & (pods.node >= 0))
    owners: dict[ServiceKey, dict[str, Any]] = {}
    items = [_node(history, row) for row in range(len(history.nodes))]
    started = (moment - timedelta(days=1)).astimezone(UTC).strftime(_TIME)
    for pod in there.tolist():
        service = pods.services[int(pods.service[pod])]
        owner = owners.setdefault(service, _owner(service, started))
        node = history.nodes[int(pods.node[pod])]
        items.append(_pod(pods.pods[pod], service, owner, node, pods.requests[pod], started))
    items += [_as_object(owner) for owner in owners.values() if owner["object"] is not None]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _node(history: History, row: int) -> dict[str, Any]:
    capacity = history.capacity[row]
    status = {"cpu": capacity[CPU], "memory": capacity[MEMORY]}
    known = np.isfinite(history.allocatable[row])
    # What Kubernetes allocates where nothing is reserved for the system: everything.
    cores, memory = np.where(known, history.allocatable[row], capacity[[CPU, MEMORY]])
    allocatable = {"cpu": cores, "memory": memory}
    ours = {
        resource.name: f"{capacity[r]:.0f}"
        for r, resource in enumerate(RESOURCES)
        if r not in (CPU, MEMORY) and np.isfinite(capacity[r])
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": history.nodes[row], "annotations": {CAPACITY_ANNOTATION: json.dumps(ours)}},
        "spec": {},
        "status": {
            "capacity": _quantities(status) | {"pods": "110"},
            "allocatable": _quantities(allocatable) | {"pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(
    name: str, service: ServiceKey, owner: Mapping[str, Any], node: str, requests: Floats, started: str
) -> dict[str, Any]:
    namespace, _, pod = name.rpartition("/")
    wanted = _quantities({"cpu": requests[0], "memory": requests[1]})
    references = [{"apiVersion": "v1", "controller": True, **owner["reference"]}] if owner["reference"] else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod,
            "namespace": namespace or service.namespace,
            "uid": _uid(name),
            "creationTimestamp": started,
            "ownerReferences": references,
            "labels": owner["labels"],
        },
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": wanted}}]},
        "status": {
            "phase": "Running",
            "startTime": started,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": started}],
            "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {"startedAt": started}}}],
        },
    }


def _owner(service: ServiceKey, created: str) -> dict[str, Any]:
    """What owns the pods of a service: a reference for them, and the object in between where there is one."""
    between = {"Deployment": "ReplicaSet", "Rollout": "ReplicaSet", "CronJob": "Job"}.get(service.kind)
    if service.kind == "Pod":
        return {"reference": None, "object": None, "labels": {}}
    if between is None:
        reference = {"kind": service.kind, "name": service.name, "uid": _uid(str(service))}
        return {"reference": reference, "object": None, "labels": {}}
    template_hash = hashlib.sha256(str(service).encode()).hexdigest()[:8]
    name = f"{service.name}-{template_hash}"
    top = {"kind": service.kind, "name": service.name, "uid": _uid(str(service)), "controller": True}
    metadata = {
        "name": name,
        "namespace": service.namespace,
        "uid": _uid(f"{between}/{service.namespace}/{name}"),
        "creationTimestamp": created,
        "ownerReferences": [{"apiVersion": "apps/v1", **top}],
    }
    labels = {"pod-template-hash": template_hash} if service.kind == "Deployment" else {}
    api_version = "apps/v1" if between == "ReplicaSet" else "batch/v1"
    return {
        "reference": {"kind": between, "name": name, "uid": metadata["uid"]},
        "object": {"apiVersion": api_version, "kind": between, "metadata": metadata},
        "labels": labels,
    }


def _as_object(owner: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = owner["object"]
    return found


def _quantities(amounts: Mapping[str, float]) -> dict[str, str]:
    """Known amounts as Kubernetes writes them: cores in milli, bytes whole."""
    return {
        name: f"{round(amount * 1000)}m" if name == "cpu" else f"{amount:.0f}"
        for name, amount in amounts.items()
        if np.isfinite(amount) and amount > 0
    }


def _uid(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


@dataclass(frozen=True, slots=True)
class Evening:
    """A moment of a recorded cluster. moment: local time; cluster, models: files that scorer and explain take."""

    moment: datetime
    cluster: Path
    models: Path
    history: Path
    example_pod: str

    def options(self) -> str:
        """The same for the command line."""
        return (
            f"--cluster {self.cluster} --models {self.models} --history {self.history} "
            f"--at {self.moment:%Y-%m-%dT%H:%M}"
        )


def prepare_evening(
    settings: Settings, files: HistoryFiles, known: History, directory: Path, output: Path, progress: Progress
) -> Evening:
    """Write the cluster as it was at 17:00 on the last day, and publish a model that knows only the days before."""
    day = known.days[-1]
    moment = known.calendar.at(day, _HOUR).astimezone(known.calendar.zone)
    cluster, models = output / "cluster.json", output / "models-of-that-day"
    pods = files.pod_usage(day, day, progress=progress)
    document = cluster_at(known, pods, moment)
    write_text(cluster, json.dumps(document) + "\n")
    model = fit(known.before(known.n_days - 1), progress=progress)
    open_registry(settings.models, str(models)).publish(artefact_of(model, datetime.now(UTC)))
    example = next(item["metadata"] for item in document["items"] if item["kind"] == "Pod")
    return Evening(moment, cluster, models, directory, f"{example['namespace']}/{example['name']}")


def serve_evening(
    settings: Settings, evening: Evening, *, seconds: float | None, on_started: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C, or for some seconds. A port that is taken is no reason not to show the page."""
    inputs = Inputs(cluster=evening.cluster, models=str(evening.models), history=evening.history, at=evening.moment)
    with open_scorer(settings, inputs) as (scorer, background):
        check_exposed(settings.scorer.serving)
        serving = settings.scorer.serving
        hosts = hosts_of(serving)
        app = create_app(scorer, settings.scorer, hosts=hosts, hot=settings.hot_share)
        try:
            server = ScorerServer(app, serving, on_started)
        except InputError:
            server = ScorerServer(app, serving.replace(port=0), on_started)
        timer = None if seconds is None else threading.Timer(seconds, server.stop)
        with background:
            if timer is not None:
                timer.start()
            try:
                server.run()
            finally:
                if timer is not None:
                    timer.cancel()
