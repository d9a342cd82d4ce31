"""PodGroups of scheduling.k8s.io on a real API server of Kubernetes 1.37 or later, with its feature gates on.

Kubernetes 1.36 serves an older API (v1alpha2) that we do not read: there these tests are skipped, and say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from testing.clusters.own_nodes import OURS, assert_settled, bound, condition, group, groups, member, our_node, our_pod
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.binaries import kubernetes_version
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.controller_manager.controller_manager import ControllerManager
from testing.waiting import eventually
from tests.schedule.conftest import Started

_FEATURES: Final = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup", "WorkloadWithJob")
GATES: Final = (
    f"--feature-gates={','.join(f'{name}=true' for name in _FEATURES)}",
    "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
)
GROUPS: Final = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
WORKLOADS: Final = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads"
COMPOSITES: Final = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"
JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture(scope="module")
def module_plane() -> Iterator[ControlPlane]:
    if kubernetes_version() in ("1.35", "1.36"):
        pytest.skip("scheduling.k8s.io/v1beta1 is not served before 1.37: run with KUBERNETES_VERSION=1.37")
    with ControlPlane(api_server_arguments=GATES) as running, Api(running) as api:
        for path, manifest in shipped("crds/podgroups/podgroups.yaml"):
            api.request("POST", path, manifest)
        yield running


@pytest.fixture
def native(plane: ControlPlane) -> Iterator[Api]:
    with Api(plane) as api:
        yield api
        for path in (JOBS, GROUPS, COMPOSITES, WORKLOADS):
            for one in api.request("GET", path)["items"]:
                api.request("DELETE", f"{path}/{one['metadata']['name']}")


def native_group(name: str, *, members: int, **spec: Any) -> Manifest:
    policy = {"gang": {"minCount": members}} if members else {"basic": {}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def of_group(made: Manifest, name: str) -> Manifest:
    """The pod as a member of a native group."""
    made["spec"]["schedulingGroup"] = {"podGroupName": name}
    return made


def native_member(of: str, number: int, *, cpu: str = "1") -> Manifest:
    return of_group(our_pod(f"{of}-native-{number}", cpu=cpu), of)


def said(api: Api, name: str) -> tuple[str, str, str]:
    """Status, reason and message of its condition."""
    for one in api.request("GET", f"{GROUPS}/{name}").get("status", {}).get("conditions", []):
        if one["type"] == "PodGroupInitiallyScheduled":
            return one["status"], one["reason"], one["message"]
    return "", "", ""


def test_whole_or_not_at_all_and_apart_from_our_own_group_of_that_name(
    plane: ControlPlane, writer: ClusterWriter, native: Api, start: Started
) -> None:
    writer.create(our_node("small", cpu=3))
    process = start()
    native.request("POST", GROUPS, native_group("train", members=4))
    with groups(plane) as those:
        those.create(group("train", members=2))
        writer.create_many(native_member("train", number) for number in range(4))

        def no_room_for_all() -> bool:
            status, reason, message = said(native, "train")
            return (status, reason) == ("False", "Unschedulable") and "3 of 4 members" in message

        def pods_say_so() -> bool:
            found = {condition(one)[1] for one in writer.list_all("pods")}
            return all("placed as a whole or not at all" in one and "of scheduling.k8s.io" in one for one in found)

        assert eventually(no_room_for_all), (said(native, "train"), process.log[-3000:])
        assert eventually(pods_say_so), [condition(one) for one in writer.list_all("pods")]
        assert bound(writer) == 0, "a part of the group has a node"
        writer.create_many(member("train", number) for number in range(2))
        assert eventually(lambda: bound(writer, "train-member") == 2), process.log[-3000:]
        assert bound(writer, "train-native") == 0
        writer.create(our_node("large", cpu=4))
        assert eventually(lambda: bound(writer, "train-native") == 4), process.log[-3000:]
        assert_settled(writer, [process])
        assert eventually(lambda: said(native, "train")[:2] == ("True", "Scheduled")), said(native, "train")
        assert eventually(lambda: those.status("train").get("scheduled") == 2), those.status("train")


def test_kube_scheduler_keeps_the_groups_of_its_own_pods(
    plane: ControlPlane, writer: ClusterWriter, native: Api, start: Started
) -> None:
    writer.create(our_node("ours", cpu=2))
    writer.create(node("theirs", cpu="2", reserved_cpu="0m", labels={"whose": "theirs"}))
    with KubeScheduler(plane, arguments=GATES[:1]) as theirs:
        process = start()
        for name in ("mine", "other"):
            native.request("POST", GROUPS, native_group(name, members=2))
        for number in range(2):
            other = pod(f"other-{number}", cpu="1")
            other["spec"]["nodeSelector"] = {"whose": "theirs"}
            writer.create(of_group(other, "other"))
            writer.create(native_member("mine", number))
        assert eventually(lambda: bound(writer) == 4), (process.log[-2000:], theirs.end_of_log())
        assert eventually(lambda: said(native, "mine")[0] == said(native, "other")[0] == "True")
        fields = [
            one["manager"]
            for one in native.request("GET", f"{GROUPS}/other")["metadata"]["managedFields"]
            if one.get("subresource") == "status"
        ]
        assert fields == ["kube-scheduler"], "only kube-scheduler writes the status of its groups"


def test_a_group_within_a_composite_group_waits_and_names_it(
    writer: ClusterWriter, native: Api, start: Started
) -> None:
    """With room for all: placed one after the other they would not be the whole that they ask to be."""
    gang = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    whole: Manifest = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    templates = [{"name": name, **gang} for name in ("prefill", "decode")]
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "serving"}}
    spec = {"compositePodGroupTemplates": [{"name": "all", **whole, "podGroupTemplates": templates}]}
    native.request("POST", WORKLOADS, kind | {"spec": spec})
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup", "metadata": {"name": "serving"}}
    whole["workloadRef"] = {"workloadName": "serving", "templateName": "all"}
    native.request("POST", COMPOSITES, kind | {"spec": whole})
    for name in ("prefill", "decode"):
        reference = {"workloadName": "serving", "templateName": name}
        made = native_group(name, members=1, parentCompositePodGroupName="serving", workloadRef=reference)
        native.request("POST", GROUPS, made)
    writer.create(our_node("large", cpu=8))
    process = start()
    writer.create_many(native_member(name, 0) for name in ("prefill", "decode"))
    writer.create(our_pod("alone"))
    assert eventually(lambda: bound(writer, "alone") == 1), process.log[-3000:]
    says = "spec.parentCompositePodGroupName: CompositePodGroup serving is not supported"
    assert eventually(lambda: all(says in said(native, name)[2] for name in ("prefill", "decode"))), process.log[-3000:]
    assert said(native, "decode")[:2] == ("False", "SchedulerError")

    def pods_say_so() -> bool:
        return sum(says in condition(one)[1] for one in writer.list_all("pods")) == 2

    assert eventually(pods_say_so), [condition(one) for one in writer.list_all("pods")]
    assert bound(writer) == 1, "a part of the composite group has a node"


def job(name: str, **spec: Any) -> Manifest:
    """Of three pods, one core each."""
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"schedulerName": OURS, "restartPolicy": "Never", "containers": [container]}}
    metadata = {"name": name.replace(" ", "-")}
    made = {"parallelism": 3, "completions": 3, "template": template} | spec
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": made}


def test_pods_of_a_job_that_asks_for_no_gang_are_placed_one_by_one(
    plane: ControlPlane, writer: ClusterWriter, native: Api, start: Started
) -> None:
    writer.create(our_node("small", cpu=2))
    with ControllerManager(plane, ("job-controller",), (GATES[0],)):
        process = start()
        native.request("POST", JOBS, job("each"))

        def is_one_left() -> bool:
            waiting = [condition(one)[1] for one in writer.list_all("pods") if condition(one)[1]]
            return bound(writer) == 2 and [one.partition(":")[0] for one in waiting] == ["0/1 nodes are available"]

        assert eventually(is_one_left), ([condition(one) for one in writer.list_all("pods")], process.log[-2000:])
        assert all("schedulingGroup" in one["spec"] for one in writer.list_all("pods"))


@pytest.mark.parametrize("asks", ["in its spec", "by our annotation"])
def test_a_job_that_asks_for_a_gang_is_placed_whole(
    asks: str, plane: ControlPlane, writer: ClusterWriter, native: Api, start: Started
) -> None:
    """The Job controller makes a Workload and a PodGroup of .spec.scheduling, and names it in the pods. It does so for
    any Job: one that asks for its gang by an annotation is in a native group, too, which asks for nothing.
    """
    writer.create(our_node("small", cpu=2))
    made = job(asks)
    if asks == "in its spec":
        made["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}
    else:
        made["spec"]["template"]["metadata"] = {"annotations": {"forecast-scheduler.io/min-member": "3"}}
    with ControllerManager(plane, ("job-controller",), (GATES[0],)) as controllers:
        process = start()
        native.request("POST", JOBS, made)

        def waits_whole() -> bool:
            pods = writer.list_all("pods")
            return len(pods) == 3 and all("2 of 3 members" in condition(one)[1] for one in pods)

        assert eventually(waits_whole), (controllers.log.read_text()[-2000:], process.log[-2000:])
        assert all("schedulingGroup" in one["spec"] for one in writer.list_all("pods"))
        assert bound(writer) == 0
        writer.create(our_node("large", cpu=1))
        assert eventually(lambda: bound(writer) == 3), process.log[-3000:]
        of_job = [one["metadata"]["name"] for one in native.request("GET", GROUPS)["items"]]
        (name,) = (one for one in of_job if one.startswith(made["metadata"]["name"]))
        assert eventually(lambda: said(native, name)[1] == ("Scheduled" if asks == "in its spec" else "")), of_job
