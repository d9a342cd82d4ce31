"""Services by kube-scheduler with the extender, GPU pods and jobs by our own loops: the overlay for both.

As it is shipped: its settings, arguments, accounts and rights, and the configuration of kube-scheduler, work on a real
control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from forecast_scheduler.settings.document import Settings
from testing.clusters.gpu_nodes import GPUS, gpu_node, gpu_pod
from testing.clusters.job_world import JOBS, job_pod
from testing.clusters.own_nodes import DOMAIN, LONG, OURS, our_node
from testing.processes.scorer_process import ScorerProcess, eventually, settings_of
from testing.servers.applying import Applier
from testing.servers.audit import Audit
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.kustomize import DEPLOY, built, built_from
from tests.deploy.rights import Installed, account_of

OVERLAY: Final = "overlays/extender-and-own-loops"
PARTS: Final = ("extender", "schedule")
KUBE_SCHEDULER: Final = DEPLOY / "kube-scheduler"


def _configuration(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((KUBE_SCHEDULER / name).read_text())
    return found


def _arguments(manifests: list[Manifest], part: str) -> list[str]:
    """Of the part's container, without the name of the command and the place of the settings."""
    [container] = [
        one["spec"]["template"]["spec"]["containers"][0]
        for one in manifests
        if one["kind"] == "Deployment" and one["metadata"]["name"] == f"forecast-scheduler-{part}"
    ]
    command, *rest = container["args"]
    assert command == part
    at = rest.index("--config")
    return [*rest[:at], *rest[at + 2 :]]


def _settings(manifests: list[Manifest]) -> dict[str, Any]:
    [settings] = [one["data"]["settings.yaml"] for one in manifests if one["kind"] == "ConfigMap"]
    found: dict[str, Any] = yaml.safe_load(settings)
    return found


# What is shipped


def test_both_overlays_in_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as error:
        built_from(tmp_path / "both", resources=["overlays/extender", "overlays/own-loops"])
    shown = "may not add resource with an already registered id: Namespace.v1.[noGrp]/forecast-scheduler.[noNs]"
    assert shown in str(error.value)


def test_it_has_the_objects_of_both_and_of_gpus_once_each() -> None:
    of_all = [one for name in ("extender", "own-loops", "gpu") for one in built(f"overlays/{name}")]
    made = [(one["kind"], one["metadata"]["name"]) for one in built(OVERLAY)]
    assert sorted(made) == sorted({(one["kind"], one["metadata"]["name"]) for one in of_all})


def test_services_are_left_to_kube_scheduler_and_no_node_is_of_both() -> None:
    manifests = built(OVERLAY)
    assert _arguments(manifests, "schedule") == ["--profile", "gpu,job"]
    settings = Settings.model_validate(_settings(manifests))
    assert settings.extender.domain not in {settings.schedule.domain, *settings.schedule.share_nodes}


def test_kube_scheduler_has_the_extender_of_one_and_the_profiles_of_the_other_configuration() -> None:
    both = _configuration("extender-beside-own-loops.yaml")
    assert both == _configuration("extender-in-cluster.yaml") | {
        "profiles": _configuration("beside-own-loops.yaml")["profiles"]
    }
    named = {one["schedulerName"] for one in both["profiles"]}
    assert named == {*Settings().extender.scheduler_names, *Settings().extender.daemon_schedulers}


# At work


@dataclass(frozen=True, slots=True)
class World:
    writer: ClusterWriter
    audit: Audit
    said: Callable[[], str]

    def nodes_of(self, prefix: str = "") -> dict[str, str]:
        """Name of the node, '' = none, by pods whose names begin so."""
        found = {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in self.writer.list_all("pods")}
        return {name: at for name, at in found.items() if name.startswith(prefix)}

    def awaits(self, condition: Callable[[], bool]) -> None:
        assert eventually(condition, LONG), (self.nodes_of(), self.said())

    def clear(self) -> None:
        self.writer.delete_many(self.writer.list_all("pods"))
        self.writer.delete_many(self.writer.list_all("nodes"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory, manifests = tmp_path_factory.mktemp("both"), built(OVERLAY)
    audit = Audit(directory, [account_of(part) for part in PARTS])
    plain: dict[str, Any] = {"tls_cert": None, "tls_key": None, "client_ca": None, "decisions": {"log": None}}
    with ControlPlane(api_server_arguments=audit.arguments) as plane, Applier(plane) as applier:
        installed = Installed(plane, applier, audit, manifests)
        shipped = _settings(manifests)
        settings = {
            "extender": shipped["extender"] | plain | {"host": "127.0.0.1", "drain": 0},
            "schedule": shipped["schedule"] | {"host": "127.0.0.1", "drain": 0},
            "scorer": shipped["scorer"] | settings_of()["scorer"],
        }

        def process(part: str) -> ScorerProcess:
            """With the rights of its account, and what the overlay says to it."""
            arguments: tuple[str | Path, ...] = (
                "--kubeconfig",
                installed.kubeconfig(part),
                *_arguments(manifests, part),
            )
            return ScorerProcess(directory / part, *arguments, settings=settings, ready=False, command=part)

        with process("extender") as extender, process("schedule") as schedule, ClusterWriter(plane) as writer:
            configuration = _configuration("extender-beside-own-loops.yaml")
            configuration["clientConnection"]["kubeconfig"] = str(plane.kubeconfig)
            [asked] = configuration["extenders"]
            asked |= {"urlPrefix": extender.url, "enableHTTPS": False, "httpTimeout": "10s"}
            del asked["tlsConfig"]
            for one in (extender, schedule):
                one.wait_ready(LONG)
            with KubeScheduler(plane, settings=configuration) as kube_scheduler:

                def said() -> str:
                    return "\n".join((schedule.log[-3000:], extender.log[-1500:], kube_scheduler.end_of_log()))

                yield World(writer, audit, said)


def _nodes(n_each: int) -> list[Manifest]:
    """Those of services, without the label, have a card, too: nothing but the label keeps pods apart."""
    return [
        *(node(f"services-{i}", cpu="2", reserved_cpu="0m", extended={"nvidia.com/gpu": "4"}) for i in range(n_each)),
        *(our_node(f"loops-jobs-{i}", cpu=2) for i in range(n_each)),
        *(gpu_node(f"loops-cards-{i}", 4, cpu=2) for i in range(n_each)),
    ]


def _daemon(name: str, on: str) -> Manifest:
    """As the DaemonSet controller makes it: it names its node by affinity."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "net", "uid": "uid-net"}
    made = pod(name, cpu="10m", owner=owner, scheduler_name="daemons")
    field = {"key": "metadata.name", "operator": "In", "values": [on]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    made["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return made


def test_each_kind_of_pods_gets_nodes_of_its_domain_from_its_scheduler(world: World) -> None:
    made = _nodes(1)
    world.audit.forget()
    world.writer.create_many(made)
    assert {one["metadata"]["labels"].get(DOMAIN) for one in made} == {None, OURS}
    try:
        world.writer.create_many(
            [pod("service"), gpu_pod("cards", gpus=2), job_pod("job"), _daemon("net-0", "services-0"),
             _daemon("net-1", "loops-cards-0")]
        )  # fmt: skip
        world.awaits(lambda: all(world.nodes_of().values()))
        found = world.nodes_of()
        assert found["service"] == "services-0"
        assert found["cards"] == "loops-cards-0"
        assert found["job"].startswith("loops-")
        assert (found["net-0"], found["net-1"]) == ("services-0", "loops-cards-0")
        assert [right for part in PARTS for right in world.audit.refused(account_of(part))] == []
        assert ("create", "", "pods/binding") in world.audit.used(account_of("schedule"))
    finally:
        world.clear()


@pytest.mark.long
def test_with_more_pods_than_room_none_crosses_into_the_other_domain(world: World) -> None:
    """The last node of each kind is full, and the pods that are left over wait."""
    n_each, per_node = 5, 20
    room = n_each * per_node
    world.writer.create_many(_nodes(n_each))
    try:
        world.writer.create_many(
            made
            for i in range(room + 20)
            for made in (pod(f"service-{i}", cpu="100m"), gpu_pod(f"cards-{i}", gpus=1, cpu="50m"))
        )
        world.awaits(lambda: sum(map(bool, world.nodes_of("service").values())) == room)
        world.awaits(lambda: sum(map(bool, world.nodes_of("cards").values())) == 4 * n_each)
        world.writer.create_many(job_pod(f"job-{i}", cpu="100m") for i in range(2 * room + 20))
        world.awaits(lambda: sum(map(bool, world.nodes_of("job").values())) >= room)
        for prefix, domain in (("service", "services"), ("cards", "loops-cards"), ("job", "loops")):
            assert {at for at in world.nodes_of(prefix).values() if not at.startswith(domain)} <= {""}
    finally:
        world.clear()


def test_the_scheduler_names_are_those_of_the_profiles() -> None:
    assert (Settings().schedule.gpu.scheduler_name, Settings().schedule.job.scheduler_name) == (GPUS, JOBS)
