"""A real control plane with controllers and a kube-scheduler; kubelets that a test may hold back; plans and drivers."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from forecast.calendar import Calendar
from forecast_scheduler.cli import run
from rebalancer.execution.plan_wire import MoveSpec, PlanMode, PlanSpec, Trigger, moment
from testing.rebalancing.live_two_peaks import budget, deployment
from testing.rebalancing.two_peaks import Recorder, TwoPeaks, days_before, seats_at_first, zone_in_the_small_hours
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.controller_manager.controller_manager import ControllerManager
from testing.servers.workload_kubelets import WorkloadKubelets
from testing.waiting import eventually
from tests.live_cluster.custom_resources import CustomResources
from tests.rebalance.driver import When, main

ROOT = Path(__file__).parents[2]
DEFINITION = ROOT / "deploy" / "crds" / "rebalanceplans" / "rebalanceplans.yaml"
PLANS = "/apis/forecast-scheduler.io/v1alpha1/rebalanceplans"
LONG = 90.0

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.rebalance.driver"])


@dataclass
class Site:
    """account: kubeconfig of the drivers; None = of an administrator."""

    plane: ControlPlane
    writer: ClusterWriter
    kubelets: WorkloadKubelets
    resources: CustomResources
    running: list[ForkServerProcess] = field(default_factory=list)
    account: Path | None = None

    def deploy(self, app: str, replicas: int, **annotations: str) -> list[Manifest]:
        """A Deployment whose pods all run on node a; returns them."""
        self.writer.create(deployment(app, replicas, {"cpu": "100m"}, annotations=annotations))
        assert eventually(lambda: len(self.ready(app)) == replicas), self.pods(app)
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
        made = self.writer.create(budget(app, least))
        wanted = len(self.pods(app))

        def is_counted() -> bool:
            found = self.writer.list_all("poddisruptionbudgets")
            return any(
                one["metadata"]["uid"] == made["metadata"]["uid"] and one["status"].get("currentHealthy") == wanted
                for one in found
            )

        assert eventually(is_counted)

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
        spec = PlanSpec(created_at=moment(time.time()), trigger=Trigger.NIGHT, mode=PlanMode.ON, moves=moves)
        answer = self.resources.request("POST", f"{PLANS}?fieldValidation=Strict", plan_object(name, spec))
        assert (answer.status, answer.warnings) == (201, ()), answer.body

    def status(self, name: str = "p") -> dict[str, Any]:
        return dict(self.resources.request("GET", f"{PLANS}/{name}").body.get("status", {}))

    def states(self, name: str = "p") -> list[str]:
        return [one["state"] for one in self.status(name).get("moves", [])]

    def drive(self, when: When = "never", *, patience: float = 300) -> ForkServerProcess:
        """Start a driver."""
        process = _FORKS.Process(target=main, args=(self.account or self.plane.kubeconfig, when, patience), daemon=True)
        process.start()
        self.running.append(process)
        return process

    def driven(self, when: When = "never", *, patience: float = 300) -> int | None:
        """Let a driver go on until no plan is active, or until it dies; returns its exit code, None = it goes on."""
        process = self.drive(when, patience=patience)
        process.join(LONG)
        return process.exitcode


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
        assert eventually(lambda: resources.request("GET", PLANS).status == 200)
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
        WorkloadKubelets(plane) as kubelets,
    ):
        writer.create(node("a"))
        made = Site(plane, writer, kubelets, resources)
        yield made
        for process in made.running:
            process.kill()
            process.join(LONG)
        for plural in ("deployments", "poddisruptionbudgets"):
            writer.delete_many(writer.list_all(plural))
        assert eventually(lambda: not writer.list_all("pods"))
        writer.delete_many(writer.list_all("nodes"))
        resources.request("DELETE", PLANS)


@pytest.fixture(scope="module")
def world() -> TwoPeaks:
    """A cluster in a zone in which the small hours are now: moves are due."""
    return TwoPeaks(Calendar(str(zone_in_the_small_hours(datetime.now(UTC)))))


@pytest.fixture(scope="module")
def models(world: TwoPeaks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with a model of the fourteen days before today."""
    directory = tmp_path_factory.mktemp("two-peaks")
    recorder = Recorder(world, directory)
    today = world.calendar.day_and_slot(datetime.now(UTC))[0]
    for day in days_before(today, 14):
        recorder.add(day, [seats_at_first(world)] * 48)
    assert run(["train", "--history", str(recorder.history), "--models", str(directory / "models")]) == 0
    return directory / "models"
