"""A cluster at 04:00 whose nights belong to CronJobs: a file as `kubectl get` writes it, a model, and questions.

shared-*    nine nodes; CronJob pods that started at 02:00 run on the even ones until 05:00
virtual     a virtual node of 10,000 cores behind a taint
gpu         a node with four cards behind a taint
private-*   two nodes of another scheduling domain
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from forecast_scheduler.cli import run

MOMENT: Final = datetime(2026, 10, 19, 4, 0, tzinfo=UTC)
"""A Monday. The history ends at the midnight before it."""

_DAYS: Final = 14
_STEP_MINUTES: Final = 15
_STEPS: Final = 24 * 60 // _STEP_MINUTES
_USAGE: Final = (
    "cpu_cores",
    "memory_bytes",
    "disk_bytes_per_second",
    "network_bytes_per_second",
    "log_bytes_per_second",
)
_PER_CORE: Final = np.array([1.0, 2.0**30, 1e6, 2e6, 1e4])
"""Of the five resources, what a pod uses for each core of its CPU."""

_CORES: Final = (22, 40, 26, 64, 30, 52, 34, 46, 38)
"""Of different sizes, so that no two nodes are equally good for a pod."""

_NODES: Final = {f"shared-{number}": cores for number, cores in enumerate(_CORES)} | {"gpu": 32}
"""Name -> cores of the nodes with a history: those that some question may go to."""

_DEPLOYMENTS: Final = {f"shop-{number}": (2.0 + 0.5 * number, 2 + number % 3) for number in range(8)}
"""Name -> cores of one pod at its evening peak, and pods."""

_CRON_JOBS: Final = {"report": 6.0, "backup": 4.0}
"""Name -> cores of one pod while it runs, from 02:00 to 05:00; one pod on every node with an even number."""

_QUESTIONS: Final = 50


@dataclass(frozen=True)
class Question:
    """A pod that waits.

    service : Kind/name of its top owner
    cores   : requested
    pod     : its manifest
    hosts   : the only nodes that its affinity allows; () = any
    """

    name: str
    service: str
    cores: float
    pod: dict[str, Any]
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class NightCluster:
    """
    objects  : of the cluster file at `cluster`, without questions
    history  : two weeks until the midnight before MOMENT, which the model was trained on
    recorded : the same and the eight days that followed, in which the pods of all questions ran
    """

    folder: Path
    cluster: Path
    history: Path
    recorded: Path
    models: Path
    settings: Path
    objects: tuple[dict[str, Any], ...]
    questions: tuple[Question, ...]

    def with_pod(self, question: Question) -> Path:
        """The cluster file with one question among its pods."""
        path = self.folder / f"{question.name}.json"
        _write(path, [*self.objects, question.pod])
        return path


def night_cluster(folder: Path) -> NightCluster:
    """Write the histories, train on the shorter one, and write the cluster file."""
    history, models, cluster = folder / "history", folder / "models", folder / "cluster.json"
    questions = tuple(_question(number) for number in range(_QUESTIONS))
    _write_history(history, _DAYS, ())
    _write_history(folder / "recorded", _DAYS + 8, questions)
    assert run(["train", "--history", str(history), "--models", str(models)]) == 0
    objects = tuple(_objects())
    _write(cluster, objects)
    settings = folder / "settings.yaml"
    # The loops place on the same nodes as kube-scheduler here: those without a domain.
    # The scorer and the replay rank by the forecast alone, so no rule about nodes comes before it.
    loops = {"domain": "", "profiles": ["online", "job"]}
    settings.write_text(json.dumps({"schedule": loops, "node_rules": {"cards": {"without_cards": "off"}}}))
    return NightCluster(folder, cluster, history, folder / "recorded", models, settings, objects, questions)


# History


def _write_history(folder: Path, n_days: int, questions: Sequence[Question]) -> None:
    """Usage of nodes is 3 % above that of their pods. The pods of questions run from MOMENT on."""
    folder.mkdir(parents=True)
    first = MOMENT.replace(hour=0) - timedelta(days=_DAYS)
    times = pd.date_range(first, periods=n_days * _STEPS, freq=f"{_STEP_MINUTES}min")
    hours = (np.arange(len(times)) % _STEPS) * _STEP_MINUTES / 60
    evening = 0.1 + 0.9 * np.exp(-((hours - 20.0) ** 2) / 6)  # (n_times,)
    total = np.zeros((len(_NODES), len(times)))
    usage, pods = [], []

    def add(service: str, pod: str, node: int, cores: float, there: slice, request: float = 0.5) -> None:
        noise = np.random.default_rng([ord(letter) for letter in pod]).normal(0, 0.05, len(times))
        used = (cores * (evening if service.startswith("Deployment") else 1.0) * np.exp(noise))[there]
        total[node, there] += used
        frame = pd.DataFrame(used[:, None] * _PER_CORE, columns=list(_USAGE))
        frame.insert(0, "timestamp", times[there])
        usage.append(frame.assign(namespace="shop", service=service, pod=pod, node=f"shared-{node}"))
        pods.append(("shop", service, pod, request, 2.0**29))

    for number, (name, (cores, count)) in enumerate(_DEPLOYMENTS.items()):
        for replica in range(count):
            node = (number + 3 * replica) % len(_CORES)
            add(f"Deployment/{name}", f"{name}-6c7d8f9b5d-{replica}", node, cores, slice(None))
    for name, cores in _CRON_JOBS.items():
        for night in range(n_days):
            there = slice(night * _STEPS + 2 * _STEPS // 24, night * _STEPS + 5 * _STEPS // 24)
            for node in range(0, len(_CORES), 2):
                # Every night has another Job, on nodes that change until the night of the cluster file.
                job = 29_999_999 - _DAYS + night
                where = (node + max(0, _DAYS - night)) % len(_CORES)
                add(f"CronJob/{name}", f"{name}-{job}-{node}", where, cores, there)
    for question in questions:
        begin = _DAYS * _STEPS + MOMENT.hour * _STEPS // 24
        runs = slice(begin, begin + _STEPS // 8 if question.service.startswith("CronJob") else len(times))
        add(question.service, question.name, 0, 0.5, runs, question.cores)
    nodes = []
    for row, name in enumerate(_NODES):
        frame = pd.DataFrame(1.03 * total[row][:, None] * _PER_CORE, columns=list(_USAGE))
        frame.insert(0, "timestamp", times)
        nodes.append(frame.assign(node=name))
    cores_of = np.array(list(_NODES.values()))
    capacity = pd.DataFrame(
        {"node": list(_NODES), **{name: cores_of * of for name, of in zip(_USAGE, _PER_CORE, strict=True)}}
    )
    columns = ["namespace", "service", "pod", "request_cpu_cores", "request_memory_bytes"]
    pd.concat(usage, ignore_index=True).to_parquet(folder / "usage.parquet")
    pd.DataFrame(pods, columns=columns).to_parquet(folder / "pods.parquet")
    pd.concat(nodes, ignore_index=True).to_parquet(folder / "nodes.parquet")
    capacity.to_parquet(folder / "capacity.parquet")


# Objects


def _objects() -> list[dict[str, Any]]:
    """Nodes, running pods, and what owns them."""
    nodes = [_node(f"shared-{number}", cores) for number, cores in enumerate(_CORES)]
    nodes.append(_node("virtual", 10_000, taint="virtual-kubelet.io/provider"))
    nodes.append(_node("gpu", _NODES["gpu"], taint="nvidia.com/gpu", cards=4))
    domain = {"forecast-scheduler.io/domain": "team-a"}
    nodes += [_node(f"private-{number}", 32, labels=domain) for number in range(2)]
    owners, pods = [], []
    for number, (name, (_, count)) in enumerate(_DEPLOYMENTS.items()):
        owners.append(_replica_set(name))
        for replica in range(count):
            node = f"shared-{(number + 3 * replica) % len(_CORES)}"
            pods.append(_pod(f"{name}-6c7d8f9b5d-{replica}", _of_deployment(name), node=node, hours=100))
    for name in _CRON_JOBS:
        owners.append(_job(name))
        pods += [
            _pod(f"{name}-29999999-{node}", _of_cron_job(name), node=f"shared-{node}", hours=2)
            for node in range(0, len(_CORES), 2)
        ]
    return [*nodes, *owners, *pods]


def _node(
    name: str, cores: int, *, taint: str = "", cards: int = 0, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    amounts = {"cpu": str(cores), "memory": f"{cores}Gi", "pods": "110"}
    if cards:
        amounts["nvidia.com/gpu"] = str(cards)
    capacity = {"disk": f"{cores}M", "network": f"{2 * cores}M", "log": f"{10 * cores}k"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": {"forecast-scheduler.io/capacity": json.dumps(capacity)},
        },
        "spec": {"taints": [{"key": taint, "value": "true", "effect": "NoSchedule"}]} if taint else {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _of_deployment(name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-6c7d8f9b5d", "uid": f"rs-{name}"}


def _of_cron_job(name: str) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-29999999", "uid": f"job-{name}"}


def _replica_set(name: str) -> dict[str, Any]:
    top = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"deployment-{name}"}
    return _owned("apps/v1", _of_deployment(name), top)


def _job(name: str) -> dict[str, Any]:
    top = {"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": f"cronjob-{name}"}
    return _owned("batch/v1", _of_cron_job(name), top)


def _owned(version: str, reference: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": reference["kind"],
        "metadata": {
            "name": reference["name"],
            "namespace": "shop",
            "uid": reference["uid"],
            "creationTimestamp": _at(2),
            "ownerReferences": [{**top, "controller": True}],
        },
    }


def _pod(
    name: str, owner: dict[str, Any], *, node: str = "", hours: float = 0.0, cores: float = 0.5, **spec: Any
) -> dict[str, Any]:
    """hours: since it started, for a pod on a node."""
    labels = {"pod-template-hash": "6c7d8f9b5d"} if owner["kind"] == "ReplicaSet" else {}
    requests = {"cpu": f"{round(1000 * cores)}m", "memory": "512Mi"}
    running = {"ready": True, "name": "main", "state": {"running": {"startedAt": _at(hours)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "creationTimestamp": _at(hours),
            "labels": {"app": name.rpartition("-")[0], **labels},
            "ownerReferences": [{**owner, "controller": True}],
            **spec.pop("metadata", {}),
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], "nodeName": node, **spec},
        "status": (
            {"phase": "Running", "startTime": _at(hours), "containerStatuses": [running]}
            if node
            else {"phase": "Pending"}
        ),
    }


def _question(number: int) -> Question:
    """Pods of known services, of one that nothing is known of, and of CronJobs; some are bound to some of the nodes."""
    names = [*_DEPLOYMENTS, "newcomer"]
    service = names[number % len(names)]
    cores = 0.75 if service == "newcomer" else 0.5 + 0.25 * (number % 4)
    spec: dict[str, Any] = {"schedulerName": "forecast-scheduler"}
    top, owner = f"Deployment/{service}", _of_deployment(service)
    if service == "newcomer":
        top = f"StatefulSet/{service}"
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": service, "uid": "newcomer"}
    elif number % 10 == 7:
        cron_job = "report" if number % 20 == 7 else "backup"
        top, owner = f"CronJob/{cron_job}", _of_cron_job(cron_job)
    hosts: tuple[str, ...] = ()
    if number % 5 == 3:
        hosts = tuple(f"shared-{(number + step) % len(_CORES)}" for step in (0, 4))
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": hosts}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if number % 7 == 5:
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    name = f"question-{number}"
    return Question(name, top, cores, _pod(name, owner, cores=cores, **spec), hosts)


def _at(hours: float) -> str:
    """So many hours before MOMENT."""
    return (MOMENT - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write(path: Path, objects: Any) -> None:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
