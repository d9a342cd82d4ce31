"""Buffers, marks and resizes by the process `autoscale`, with the rights of its account, on a real API server.

What it wrote stays where it is killed, and the next leader goes on. A leader that ends, or has no usable forecast,
takes it back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from autoscaling.nodes.guard import KEPT_UNTIL
from autoscaling.requests.pod_resources import ORIGINAL, RESIZE_LABEL
from autoscaling.requests.proven_records import SECRET
from forecast_scheduler.cli import run
from testing.processes.scorer_process import ScorerProcess
from testing.servers.applying import Applier
from testing.servers.audit import Audit
from testing.servers.cluster_objects import ClusterWriter, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.kustomize import built, built_from
from testing.waiting import eventually
from tests.autoscale.conftest import QUIET
from tests.deploy.rights import DELEGATED, OF_EVERYBODY, Installed, account_of, granted
from tests.live_cluster.custom_resources import CustomResources

PART: Final = "autoscaler"
NODES: Final = ("a", "b", "c")
BUFFERS: Final = "/namespaces/forecast-scheduler-buffers"
CAPACITY_BUFFERS: Final = f"/apis/autoscaling.x-k8s.io/v1beta1{BUFFERS}/capacitybuffers"
DEPLOYMENTS: Final = f"/apis/apps/v1{BUFFERS}/deployments"
DEFINITION: Final = Path(__file__).parents[1] / "autoscaling" / "nodes" / "capacitybuffers.yaml"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KEY: Final = f"/api/v1/namespaces/forecast-scheduler/secrets/{SECRET}"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/forecast-scheduler/leases"
QUICK: Final[Mapping[str, Any]] = {
    "scorer": {"usage_every": "1s", "model_every": "1s", "overview_every": "1s"},
    "autoscale": {
        "every": "1s",
        "act_every": "1s",
        "buffers": {"enabled": True, "lead": "3h", "most_share": 1},  # at most as much as runs: two pods
        "guard": {"enabled": True, "margin": 0},
        "leader_election": {"duration": "3s", "renew_deadline": "2s", "retry_period": "0.5s"},
    },
    "requests": {"resize": {"enabled": True, "lead": "0s", "hold": "0s", "service_share": 1, "autoscaled": True}},
}


class World:
    """Three nodes of four cores; two pods of the service on the first, which ask for resizes."""

    def __init__(self, installed: Installed, writer: ClusterWriter, resources: CustomResources, models: Path) -> None:
        self.installed, self._writer, self._resources, self._models = installed, writer, resources, models

    def process(self, directory: Path, **scorer: Any) -> ScorerProcess:
        """A process with the rights of the account. scorer: settings of that group in addition"""
        settings = {**QUICK, "scorer": {**QUICK["scorer"], **scorer}}
        arguments = ("--kubeconfig", self.installed.kubeconfig(PART), "--models", self._models)
        return ScorerProcess(directory, *arguments, settings=settings, command="autoscale", ready=False, forked=True)

    def items(self, path: str) -> list[dict[str, Any]]:
        return list(self._resources.request("GET", path).body.get("items") or [])

    def marked(self) -> set[str]:
        """Nodes that bear our mark."""
        found = self._writer.list_all("nodes")
        return {one["metadata"]["name"] for one in found if KEPT_UNTIL in one["metadata"].get("annotations", {})}

    def chunks(self) -> list[int]:
        """Of the buffers, as CapacityBuffers or Deployments."""
        return [one["spec"]["replicas"] for one in (*self.items(CAPACITY_BUFFERS), *self.items(DEPLOYMENTS))]

    def resized(self) -> int:
        """Pods that bear the record of their requests."""
        found = self._writer.list_all("pods")
        return sum(ORIGINAL in one["metadata"].get("annotations", {}) for one in found)

    def cores(self) -> set[str]:
        """Requests of the pods."""
        found = self._writer.list_all("pods")
        return {one["spec"]["containers"][0]["resources"]["requests"]["cpu"] for one in found}

    def is_written(self) -> bool:
        """Whether all three hands have written."""
        resized = self.resized() == QUIET and "1" not in self.cores()
        return self.chunks() == [QUIET] and len(self.marked()) == 2 and resized

    def is_taken_back(self) -> bool:
        """Whether nothing is left of it."""
        return not self.chunks() and not self.marked() and not self.resized() and self.cores() == {"1"}

    def state(self) -> tuple[list[int], set[str], int, set[str]]:
        """For messages of assertions."""
        return self.chunks(), self.marked(), self.resized(), self.cores()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    directory = tmp_path_factory.mktemp("autoscaler")
    audit = Audit(directory, [account_of(PART)])
    components = ["components/autoscaler", "components/autoscaler-writes"]
    manifests = built_from(directory / "built", resources=["overlays/observe"], components=components)
    with ControlPlane(api_server_arguments=audit.arguments) as plane, Applier(plane) as applier:
        applier.apply_all(one for one in manifests if one["kind"] == "PriorityClass")
        applier.apply_all(built("crds/reservations"))
        yield Installed(plane, applier, audit, manifests)


@pytest.fixture
def world(installed: Installed, ramp_models: Path) -> Iterator[World]:
    installed.audit.forget()
    with ClusterWriter(installed.plane, patience_seconds=30) as writer, CustomResources(installed.plane) as resources:
        installed.applier.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        writer.create_many(node(name, cpu="4", reserved_cpu="0m") for name in NODES)
        owner = writer.create(replica_set("web-5d9c7b6f4d", namespace="shop", deployment="web", desired_replicas=QUIET))
        status = running()
        # As kubelets say it that can resize: without that, the API server takes no resize.
        status["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1", "memory": "256Mi"}}
        for number in range(QUIET):
            made = pod(
                f"web-5d9c7b6f4d-{number:05d}", namespace="shop", node="a", owner=owner, cpu="1", memory="256Mi",
                labels={RESIZE_LABEL: "true"}, status=status,
            )  # fmt: skip
            writer.create(made)
        yield World(installed, writer, resources, ramp_models)
        for plural in ("pods", "nodes", "replicasets"):
            writer.delete_many(writer.list_all(plural))
        for path in (CAPACITY_BUFFERS, DEPLOYMENTS, f"/api/v1{BUFFERS}/podtemplates", LEASES, KEY):
            resources.request("DELETE", path)


@pytest.fixture
def with_capacity_buffers(world: World) -> Iterator[World]:
    """An API server that has CapacityBuffers."""
    definition = yaml.safe_load(DEFINITION.read_text())
    resources = world._resources
    assert resources.request("POST", DEFINITIONS, definition).status == 201
    assert eventually(lambda: resources.request("GET", CAPACITY_BUFFERS).status == 200)
    yield world
    resources.request("DELETE", CAPACITY_BUFFERS)
    resources.request("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
    assert eventually(lambda: resources.request("GET", CAPACITY_BUFFERS).status == 404)


def test_at_its_end_it_takes_back_what_it_wrote_with_no_more_rights_than_it_uses(
    with_capacity_buffers: World, tmp_path: Path
) -> None:
    world = with_capacity_buffers
    with world.process(tmp_path / "autoscale") as process:
        assert eventually(world.is_written), (world.state(), process.log[-3000:])
        assert [one["kind"] for one in world.items(CAPACITY_BUFFERS)] and not world.items(DEPLOYMENTS)
        assert process.metric("forecast_autoscale_acting") == 3 and process.metric("forecast_autoscale_held_up") == 0
        assert process.terminate() == 0
    assert world.is_taken_back(), (world.state(), process.log[-3000:])
    used, refused = (getattr(world.installed.audit, what)(account_of(PART)) for what in ("used", "refused"))
    rights = granted(world.installed.manifests, PART)
    assert (refused, used - rights - OF_EVERYBODY) == (set(), set())
    # Where there are CapacityBuffers, Deployments are only looked for. No buffer changed its size, no write met a
    # conflict, and no client showed a token.
    idle = {("get", "scheduling.k8s.io", "priorityclasses"), ("get", "", "pods"), ("patch", "", "podtemplates")}
    idle |= {(verb, "apps", "deployments") for verb in ("create", "patch", "delete")}
    idle |= {("patch", "autoscaling.x-k8s.io", "capacitybuffers")} | DELEGATED
    # tests/autoscale/test_min_replicas.py uses these.
    idle |= {(verb, "autoscaling", "horizontalpodautoscalers") for verb in ("get", "list", "patch")}
    idle |= {("list", "", "resourcequotas"), ("create", "events.k8s.io", "events")}
    assert rights - used - idle == set()


def test_of_two_one_writes_and_the_other_takes_over(world: World, tmp_path: Path) -> None:
    with world.process(tmp_path / "first") as first, world.process(tmp_path / "second") as second:
        both = (first, second)
        assert eventually(world.is_written), (world.state(), first.log[-3000:], second.log[-3000:])
        assert sum(one.metric("forecast_autoscale_leading") for one in both) == 1
        leader, other = sorted(both, key=lambda one: -one.metric("forecast_autoscale_leading"))
        assert other.metric("forecast_autoscale_acting") == 0
        leader.kill()
        assert eventually(lambda: other.metric("forecast_autoscale_acting") == 3), other.log[-3000:]
        assert world.is_written(), world.state()
        assert other.terminate() == 0
    assert world.is_taken_back(), world.state()


def test_without_a_usable_forecast_it_takes_everything_back(world: World, tmp_path: Path) -> None:
    with world.process(tmp_path / "first") as first:
        assert eventually(world.is_written), (world.state(), first.log[-3000:])
        first.kill()
    stale = {"fresh_model": "1s", "oldest_model": "2s"}
    with world.process(tmp_path / "stale", ladder=stale) as second:
        assert eventually(world.is_taken_back), (world.state(), second.log[-3000:])
        assert second.metric("forecast_autoscale_has_forecast") == 0


@pytest.mark.long  # tests/autoscaling/test_autoscaler.py has what a hand does that fails
def test_it_outlives_the_api_server(world: World, tmp_path: Path) -> None:
    with world.process(tmp_path / "autoscale") as process:
        assert eventually(world.is_written), (world.state(), process.log[-3000:])
        world.installed.plane.api_server.kill()
        assert eventually(lambda: process.metric("forecast_autoscale_leading") == 0), process.log[-3000:]
        world.installed.plane.api_server.start()
        assert eventually(lambda: _acts(process)), process.log[-3000:]
        assert world.is_written(), world.state()
        assert process.terminate() == 0
    assert world.is_taken_back(), world.state()


def test_a_command_takes_everything_back_where_no_process_runs(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with world.process(tmp_path / "autoscale") as process:
        assert eventually(world.is_written), (world.state(), process.log[-3000:])
        process.kill()
    assert run(["autoscale", "--release", "--kubeconfig", str(world.installed.kubeconfig(PART))]) == 0
    assert world.is_taken_back(), world.state()
    hands = ("buffers", "guard", "resizes", "min-replicas")
    assert capsys.readouterr().out.splitlines() == [f"{name}: taken back" for name in hands]


def _acts(process: ScorerProcess) -> bool:
    with suppress(KeyError):
        return process.metric("forecast_autoscale_acting") == 3
    time.sleep(0.5)
    return False
