"""A real control plane with controllers and a kube-scheduler; kubelets that a test may hold back; plans and drivers."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from rebalancer.execution.wire import Mode, MoveSpec, PlanSpec, Trigger, moment
from testing.processes.scorer_process import eventually
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.controller_manager.controller_manager import ControllerManager
from testing.servers.watching import PODS, Watching
from tests.cluster.custom_resources import CustomResources
from tests.rebalance.driver import When, main

ROOT = Path(__file__).parents[2]
DEFINITION = ROOT / "deploy" / "crds" / "rebalanceplans" / "rebalanceplans.yaml"
PLANS = "/apis/forecast-scheduler.io/v1alpha1/rebalanceplans"
LONG = 90.0

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.rebalance.driver"])


class Kubelets:
    """Context manager: pods that are bound get ready, and pods that terminate go."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane, self.makes_ready = plane, True
        self._pods: dict[str, Manifest] = {}
        self._lock, self._ended = threading.Lock(), False
        self.gone: dict[str, Manifest] = {}  # pods that were seen to terminate or go, by UID
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Kubelets:
        self._stack = ExitStack()
        self._writer = self._stack.enter_context(ClusterWriter(self._plane, in_flight=4, patience_seconds=30))
        self._stack.enter_context(Watching(self._plane, PODS, self._see, patience_seconds=60))
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._ended = True
        self._thread.join(30)
        self._stack.close()

    def _see(self, kind: str, pod: Manifest) -> None:
        with self._lock:
            self._pods[pod["metadata"]["uid"]] = pod
            if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
                self.gone[pod["metadata"]["uid"]] = pod
            if kind == "DELETED":
                del self._pods[pod["metadata"]["uid"]]

    def _run(self) -> None:
        while not self._ended:
            with self._lock:
                pods = list(self._pods.values())
            for pod in pods:
                with suppress(RuntimeError):  # it has just changed
                    self._tend({"kind": "Pod"} | pod)
            time.sleep(0.1)

    def _tend(self, pod: Manifest) -> None:
        conditions = {one["type"]: one for one in pod["status"].get("conditions", [])}
        if "deletionTimestamp" in pod["metadata"]:
            self._writer.delete(pod)
        elif pod["spec"].get("nodeName") and self.makes_ready and conditions.get("Ready", {}).get("status") != "True":
            ready = [one for type_, one in conditions.items() if type_ != "Ready"]
            ready.append({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"})
            self._writer.patch_status(pod, {"phase": "Running", "conditions": ready})


@dataclass(frozen=True)
class Driver:
    """leads: set once it does."""

    process: ForkServerProcess
    leads: Event

    def ended(self) -> int | None:
        """Wait for its end, and return its exit code; negative = the signal that killed it, None = it goes on."""
        self.process.join(LONG)
        return self.process.exitcode


@dataclass
class Site:
    """kubeconfig: of an administrator."""

    plane: ControlPlane
    writer: ClusterWriter
    kubelets: Kubelets
    resources: CustomResources
    running: list[Driver] = field(default_factory=list)

    def deploy(self, app: str, replicas: int, **annotations: str) -> list[Manifest]:
        """A Deployment whose pods all run on node a; returns them."""
        labels = {"app": app}
        container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
        self.writer.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": app, "namespace": "default", "annotations": annotations},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            }
        )
        assert eventually(lambda: len(self.ready(app)) == replicas, LONG), self.pods(app)
        return self.ready(app)

    def pods(self, app: str) -> list[Manifest]:
        return [
            one
            for one in self.writer.list_all("pods")
            if one["metadata"].get("labels", {}).get("app") == app and "deletionTimestamp" not in one["metadata"]
        ]

    def ready(self, app: str) -> list[Manifest]:
        return [one for one in self.pods(app) if one["status"].get("phase") == "Running"]

    def cordon(self, name: str) -> None:
        self.writer.patch({"kind": "Node", "metadata": {"name": name}}, {"spec": {"unschedulable": True}})

    def open_target(self) -> None:
        """From now on new pods go to node b, and to no other."""
        self.writer.create(node("b"))
        self.cordon("a")

    def budget(self, app: str, least: int) -> None:
        """A PodDisruptionBudget; returns once the controller has counted the pods."""
        selector = {"matchLabels": {"app": app}}
        made = self.writer.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": app, "namespace": "default"},
                "spec": {"minAvailable": least, "selector": selector},
            }
        )
        wanted = len(self.pods(app))

        def is_counted() -> bool:
            found = self.writer.list_all("poddisruptionbudgets")
            return any(
                one["metadata"]["uid"] == made["metadata"]["uid"] and one["status"].get("currentHealthy") == wanted
                for one in found
            )

        assert eventually(is_counted, LONG)

    def plan(self, pods: Sequence[Manifest], name: str = "p", **fields: Any) -> None:
        moves = tuple(
            MoveSpec(
                "default",
                one["metadata"]["name"],
                one["metadata"]["uid"],
                f"Deployment/{one['metadata']['labels']['app']}",
                source="a",
                to="b",
                **fields,
            )
            for one in pods
        )
        spec = PlanSpec(created_at=moment(time.time()), trigger=Trigger.NIGHT, mode=Mode.ON, moves=moves)
        answer = self.resources.request("POST", f"{PLANS}?fieldValidation=Strict", plan_object(name, spec))
        assert (answer.status, answer.warnings) == (201, ()), answer.body

    def status(self, name: str = "p") -> dict[str, Any]:
        return dict(self.resources.request("GET", f"{PLANS}/{name}").body.get("status", {}))

    def states(self, name: str = "p") -> list[str]:
        return [one["state"] for one in self.status(name).get("moves", [])]

    def drive(self, when: When = "never", n: int = 1, *, patience: float = 300, lease: str = "") -> Driver:
        """Start a driver."""
        leads = _FORKS.Event()
        arguments = (self.plane.kubeconfig, when, n, patience, lease, leads)
        process = _FORKS.Process(target=main, args=arguments, daemon=True)
        process.start()
        self.running.append(Driver(process, leads))  # the event must outlive the start of the process
        return self.running[-1]

    def drive_to_the_end(self, *, patience: float = 300) -> None:
        """Let a driver go on until no plan is active."""
        assert self.drive(patience=patience).ended() == 0

    def await_true(self, what: Callable[[], bool]) -> None:
        assert eventually(what, LONG), self.status()


def plan_object(name: str, spec: PlanSpec) -> dict[str, Any]:
    encoded = msgspec.json.decode(msgspec.json.encode(spec))
    head = {"apiVersion": "forecast-scheduler.io/v1alpha1", "kind": "RebalancePlan", "metadata": {"name": name}}
    return {**head, "spec": encoded}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running, CustomResources(running) as resources:
        definition = yaml.safe_load(DEFINITION.read_text())
        answer = resources.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert (answer.status, answer.warnings) == (201, ()), answer.body
        assert eventually(lambda: resources.request("GET", PLANS).status == 200, LONG)
        yield running


@pytest.fixture(scope="module")
def controllers(plane: ControlPlane) -> Iterator[None]:
    with ControllerManager(plane), KubeScheduler(plane):
        yield


@pytest.fixture
def site(plane: ControlPlane, controllers: None) -> Iterator[Site]:
    with (
        ClusterWriter(plane, patience_seconds=30) as writer,
        CustomResources(plane) as resources,
        Kubelets(plane) as kubelets,
    ):
        writer.create(node("a"))
        made = Site(plane, writer, kubelets, resources)
        yield made
        for driver in made.running:
            driver.process.kill()
            driver.process.join(LONG)
        for plural in ("deployments", "poddisruptionbudgets"):
            writer.delete_many(writer.list_all(plural))
        assert eventually(lambda: not writer.list_all("pods"), LONG)
        writer.delete_many(writer.list_all("nodes"))
        resources.request("DELETE", PLANS)
