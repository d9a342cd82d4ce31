"""The tide against a real API server: workloads are scaled, whoever else writes, and whenever we are stopped.

No controllers run here: what is looked at is what the workloads are told to have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forecast.service_key import Owner, ServiceKey
from kube.client.kubernetes_client import api_client
from kube.client.pod_writes import MERGE
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from profiles.gpu.tide.tide_annotation import MOVES
from profiles.gpu.tide.training_annotations import TIDE
from profiles.gpu.tide.workloads import BUILT_IN, object_path
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.profiles.gpu.tide.tide_api import workload
from tests.profiles.gpu.tide.tide_world import World, inference, trainer

ELASTIC = {"min-replicas": "1", "max-replicas": "8"}
SERVING = [inference(n, "node-0") for n in range(4)]
EVENING = 17.4
"""Of the 12 GPUs that training has inference needs 6 within the drain time."""


@pytest.fixture(scope="module")
def api(module_plane: ControlPlane) -> Iterator[Api]:
    with Api(module_plane) as api:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}}
        api.request("POST", "/api/v1/namespaces", namespace)
        yield api


@pytest.fixture(scope="module")
def kubeconfig(module_plane: ControlPlane, api: Api) -> Path:
    """Of the shipped service account, with the shipped rights and the shipped policy."""
    for path, manifest in shipped("base/schedule/rbac.yaml", "components/gpu/rbac.yaml", "components/gpu/policy.yaml"):
        api.request("POST", path, manifest)
    account = "/api/v1/namespaces/forecast-scheduler/serviceaccounts/forecast-scheduler-schedule/token"
    token = api.request("POST", account, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    return module_plane.write_kubeconfig("schedule", token)


@pytest.fixture
def session(api: Api, kubeconfig: Path) -> Iterator[ApiSession]:
    made = ApiSession(api_client(kubeconfig))
    made.start()
    created(api, "Deployment", "probe", 1)
    assert eventually(lambda: _is_confined(made))
    yield made
    made.stop()


def _is_confined(session: ApiSession) -> bool:
    """A policy counts a moment after it was made."""
    path = object_path(BUILT_IN["Deployment"], ServiceKey("lab", "Deployment", "probe"))
    body = b'{"spec": {"replicas": 2}}'
    asked = session.request("PATCH", f"{path}?dryRun=All", body, content_type=MERGE, seconds=5)
    return "ValidatingAdmissionPolicy" in session.submit(asked).result().text


@pytest.fixture(autouse=True)
def empty(api: Api) -> Iterator[None]:
    yield
    for kind in ("StatefulSet", "Deployment", "Job"):
        collection = object_path(BUILT_IN[kind], ServiceKey("lab", kind, "x")).removesuffix("/x")
        api.request("DELETE", collection)


def created(api: Api, kind: str, name: str, replicas: int) -> list[PodInfo]:
    """The workload, and its pods as the tables would have them; two GPUs each."""
    made = workload(kind, name, replicas, annotations=ELASTIC)
    del made["metadata"]["uid"], made["metadata"]["creationTimestamp"]
    if kind == "Job":
        made["spec"] |= {"completions": 100}
        made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    else:
        made["spec"] |= {"selector": {"matchLabels": {"app": name}}}
    where = BUILT_IN[kind]
    collection = object_path(where, ServiceKey("lab", kind, name)).rpartition("/")[0]
    answer = api.request("POST", collection, {"apiVersion": f"{where.group}/{where.version}", **made})
    uid = answer["metadata"]["uid"]
    pods = [replace(trainer(n, "node-1", of=name, kind=kind), owner_uid=uid) for n in range(replicas)]
    if kind == "Deployment":
        owner = Owner("ReplicaSet", f"{name}-7d9f")
        pods = [replace(pod, owner=owner, owner_uid="rs", labels={"pod-template-hash": "7d9f"}) for pod in pods]
    return pods


def now_of(api: Api, kind: str, name: str) -> dict[str, Any]:
    return dict(api.request("GET", object_path(BUILT_IN[kind], ServiceKey("lab", kind, name))))


def test_every_kind_of_workload_shrinks_and_grows_back(api: Api, session: ApiSession) -> None:
    kinds = ("StatefulSet", "Deployment", "Job")
    pods = [pod for kind in kinds for pod in created(api, kind, f"train-{kind.lower()}", 2)]
    world = World(session, EVENING, pods=[*SERVING, *pods])
    world.tide.step()
    assert not world.tide.report.failures
    for kind in kinds:
        now = now_of(api, kind, f"train-{kind.lower()}")
        assert now["spec"]["parallelism" if kind == "Job" else "replicas"] == 1
        record = json.loads(now["metadata"]["annotations"][MOVES])
        assert (record["from"], record["to"], record["moves"]) == (2, 1, 1)
        assert now["metadata"]["labels"][TIDE] == "training"

    # Another process finds the same, though it has seen no pods of them.
    again = World(session, 23.6, pods=SERVING)
    again.tide.step()
    assert {one.training.replicas for one in again.tide.report.trainings} == {1}
    numbers = [now_of(api, kind, f"train-{kind.lower()}")["spec"] for kind in kinds]
    assert [one.get("parallelism", one.get("replicas")) for one in numbers] == [2, 2, 2]
