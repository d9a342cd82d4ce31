"""PodGroups on a real API server: their definition, what is read of them, and what their owners are told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import pytest
import yaml

from admission.webhook.template_store import WEBHOOK_TIMING
from cluster.live_tables import LiveTables
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_source import KubernetesSource, ResourceSource
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.decoding import Kind
from kube.events.event_recorder import EventRecorder, api_server_post
from kube.session.api_session import ApiSession
from placement.pod_groups.group_of_pod import GROUP_LABEL
from scheduler.gangs.directory import GangDirectory
from scheduler.gangs.group_decoding import POD_GROUPS
from scheduler.gangs.group_events import tell_of_group
from scheduler.gangs.group_status_writer import GroupStatusWriter
from scheduler.gangs.group_watch import PodGroupSink
from scheduler.loop_settings import GangOptions
from testing.constants import with_constants
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.live_cluster.custom_resources import Answer, CustomResources

HERE: Final = Path(__file__).parents[2]
DEFINITION: Final[Manifest] = yaml.safe_load((HERE / "deploy/crds/podgroups/podgroups.yaml").read_text())
EXAMPLE: Final[list[Manifest]] = list(
    yaml.safe_load_all((HERE / "deploy/crds/podgroups/examples/training.yaml").read_text())
)
GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
LONG: Final = 60.0


class World:
    """All that follows groups and tells of them, as in a scheduler, but nothing that places pods."""

    def __init__(self, plane: ControlPlane) -> None:
        api = api_client(plane.kubeconfig)
        self.tables = LiveTables()
        with self.tables.reading() as cluster:
            self.directory = GangDirectory(
                cluster.state, options=with_constants(GangOptions(), timeout=0.0, pause=3600.0)
            )
        self.tables.attach((), self.directory)
        sink = PodGroupSink(self.directory, self.tables.reading)
        self.groups = ResourceSource([ResourceWatcher(api, sink, POD_GROUPS, timing=WEBHOOK_TIMING)])
        self.cluster = KubernetesSource(api, self.tables, kinds=(Kind.NODES, Kind.PODS))
        self.session = ApiSession(api)
        self.events = EventRecorder(api_server_post(api), what="gangs", instance="test")
        self.writer = GroupStatusWriter(
            self.session, self.directory, tell=partial(tell_of_group, self.events), each_seconds=0.0
        )
        self.resources, self.objects = CustomResources(plane), ClusterWriter(plane)

    def __enter__(self) -> Self:
        for part in (self.session, self.events, self.groups, self.cluster):
            part.start()
        assert self.groups.wait_synced(LONG) and self.cluster.wait_synced(LONG)
        return self

    def __exit__(self, *unused: object) -> None:
        for part in (self.cluster, self.groups, self.events, self.session):
            part.stop()
        self.resources.__exit__()
        self.objects.close()

    def install(self, definition: Manifest) -> Answer:
        answer = self.resources.request("POST", DEFINITIONS, definition)
        assert eventually(lambda: self.resources.request("GET", GROUPS).status == 200)
        return answer

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Answer:
        query = f"fieldValidation=Strict{'&dryRun=All' if dry_run else ''}"
        return self.resources.request("POST", f"{GROUPS}?{query}", manifest)

    def gate(self, created: Manifest) -> str:
        """What it says of a pod, '' = it passes."""
        with self.tables.reading() as cluster:
            known = cluster.state.pods.get(created["metadata"]["uid"])
        return "not there yet" if known is None else self.directory.gate(known).reason

    def status(self, name: str) -> dict[str, Any]:
        """As the API server has it, after one more step of the writer."""
        self.directory.tick()
        self.writer.step()
        return dict(self.resources.request("GET", f"{GROUPS}/{name}").body.get("status", {}))

    def becomes(self, name: str, **facts: Any) -> bool:
        """Whether the status says so before long. reason, status: of the condition."""

        def says() -> bool:
            status = self.status(name)
            (condition,) = status.get("conditions") or [{}]
            found = status | {"reason": condition.get("reason"), "status": condition.get("status")}
            return all(found.get(key) == value for key, value in facts.items())

        return eventually(says)

    def events_of(self, name: str, uid: str) -> list[tuple[str, str]]:
        """Type and reason, as kubectl describe asks for them."""
        selector = f"involvedObject.kind=PodGroup,involvedObject.name={name},involvedObject.uid={uid}"
        path = f"/api/v1/namespaces/default/events?fieldSelector={selector.replace('=', '%3D').replace(',', '%2C')}"
        found = self.resources.request("GET", path).body["items"]
        return [(one["type"], one["reason"]) for one in sorted(found, key=lambda one: one["eventTime"])]


DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def world(plane: ControlPlane) -> Iterator[World]:
    with World(plane) as world:  # which is there before the definition is
        world.objects.create(node("n1"))
        early = world.objects.create(member("early", "group-of-early"))
        missing = "PodGroup default/group-of-early does not exist: the API server does not serve podgroups of"
        assert eventually(lambda: world.gate(early).startswith(missing)), world.gate(early)
        answer = world.install(DEFINITION)
        assert (answer.status, answer.warnings) == (201, ()), answer.message
        yield world


def member(name: str, of: str, **changes: Any) -> Manifest:
    return pod(name, labels={GROUP_LABEL: of}, scheduler_name="forecast-scheduler", **changes)


def group(name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"minMember": 0}, "spec.minMember"),
        ({"minMember": "4"}, "spec.minMember"),
        ({"scheduleTimeoutSeconds": -1}, "spec.scheduleTimeoutSeconds"),
        ({"minMembers": 4}, "spec.minMembers"),
    ],
)
def test_what_is_mistaken_is_refused_and_the_field_named(world: World, spec: dict[str, Any], field: str) -> None:
    answer = world.create(group("mistaken", **spec), dry_run=True)
    assert answer.status in (400, 422) and field in answer.message.replace('"', ""), answer.message


def test_the_example_from_its_first_pod_to_its_last(world: World) -> None:
    made, *jobs = EXAMPLE
    created = world.create(made)
    assert (created.status, created.warnings) == (201, ())
    for job in jobs:
        answer = world.resources.request("POST", "/apis/batch/v1/namespaces/default/jobs?fieldValidation=Strict", job)
        assert (answer.status, answer.warnings) == (201, ()), answer.message
    assert world.becomes("train", phase="Pending", reason="NotEnoughMembers", status="False")
    pods = [
        world.objects.create(
            {"apiVersion": "v1", "kind": "Pod"}
            | job["spec"]["template"]
            | {"metadata": job["spec"]["template"]["metadata"] | {"name": f"{job['metadata']['name']}-{n}"}}
        )
        for job in jobs[::-1]
        for n in range(job["spec"].get("parallelism", 1))
    ]
    # Without the Jobs' controller pods have no owner; the last of these is the parameter server.
    assert len(pods) == 5
    assert eventually(lambda: all(world.gate(one) == "" for one in pods))
    assert world.becomes("train", phase="PreScheduling", status="Unknown")
    world.directory.attempt_failed("default/train", "3 of 4 members fit", "0/1 nodes are available: 1 Insufficient cpu")
    assert world.becomes("train", phase="Scheduling", reason="Unschedulable")
    message = world.status("train")["conditions"][0]["message"]
    assert message == "3 of 4 members fit: 0/1 nodes are available: 1 Insufficient cpu"
    for one in pods[:4]:
        world.objects.bind(one["metadata"]["name"], "n1")
    assert world.becomes("train", phase="Unknown", scheduled=4), "the parameter server is missing"
    world.objects.bind(pods[4]["metadata"]["name"], "n1")
    assert world.becomes("train", phase="Scheduled", scheduled=5, status="True", reason="Scheduled")
    for one in pods:
        world.objects.patch_status(one, running())
    assert world.becomes("train", phase="Running", running=5)
    for one in pods:
        world.objects.patch_status(one, {"phase": "Succeeded"})
    assert world.becomes("train", phase="Finished", succeeded=5, status="True")
    status = world.status("train")
    assert status["scheduleStartTime"] and status["running"] == status["scheduled"] == 0
    uid = created.body["metadata"]["uid"]
    told = [("Warning", "Unschedulable"), ("Normal", "Scheduled")]
    assert eventually(lambda: world.events_of("train", uid) == told), world.events_of("train", uid)
