"""What pods take of a node beyond what their spec says, on a real API server of Kubernetes 1.37 or later:
cores behind ResourceClaims, and resizes that the kubelet defers.

The real kube-scheduler allocates the devices and writes what they take into the status of its pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from testing.clusters.own_nodes import bound, condition, our_node, our_pod
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest, pod, running
from testing.servers.control_plane.binaries import kubernetes_version
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually
from tests.profiles.gpu.dra.manifests import device, device_class, resource_slice
from tests.schedule.conftest import Started

_FEATURES: Final = ("DRANodeAllocatableResources", "InPlacePodVerticalScalingSchedulerPreemption")
GATES: Final = (f"--feature-gates={','.join(f'{name}=true' for name in _FEATURES)}",)


@pytest.fixture(scope="module")
def module_plane() -> Iterator[ControlPlane]:
    if kubernetes_version() in ("1.35", "1.36"):
        pytest.skip("these statuses have another form before 1.37: run with KUBERNETES_VERSION=1.37")
    with ControlPlane(api_server_arguments=GATES) as running, Api(running) as api:
        for path, manifest in shipped("crds/podgroups/podgroups.yaml"):
            api.request("POST", path, manifest)
        yield running


def claim(name: str) -> Manifest:
    request = {"name": "cores", "exactly": {"deviceClassName": "gpu"}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return kind | {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": {"requests": [request]}}}


def claiming(made: Manifest, name: str) -> Manifest:
    """The pod with the claim of that name in its one container."""
    made["spec"]["resourceClaims"] = [{"name": "cores", "resourceClaimName": name}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "cores"}]
    return made


def cores(name: str) -> Manifest:
    """A device that stands for two cores, and costs a pod that uses it a GiB in addition."""
    takes = {"cpu": {"mapping": {"deviceMultiplier": "2"}}, "memory": {"overhead": {"perPod": "1Gi"}}}
    return device(name) | {"nodeAllocatableResources": takes}


def test_cores_behind_the_claim_of_a_pod_are_taken(plane: ControlPlane, writer: ClusterWriter, start: Started) -> None:
    node = our_node("n", cpu=4)
    node["status"]["declaredFeatures"] = ["DRANodeAllocatableResources"]
    writer.create(node)
    writer.create(device_class())
    writer.create(resource_slice("n", cores("ccx-0"), node="n"))
    writer.create(claim("theirs"))
    with KubeScheduler(plane, arguments=GATES) as theirs:
        writer.create(claiming(pod("theirs", cpu="1"), "theirs"))
        assert eventually(lambda: bound(writer) == 1), theirs.end_of_log()
        status = writer.list_all("pods")[0]["status"]["nodeAllocatableResourceClaimStatuses"]
        assert status[0]["mapping"] == [{"name": "cpu", "quantity": "2"}]
        process = start()
        writer.create_many([our_pod("ours", cpu="2"), pod("also-theirs", cpu="2")])

        def said() -> set[str]:
            return {condition(one)[1].partition(".")[0] for one in writer.list_all("pods") if condition(one)[0]}

        expected = {"0/1 nodes are available: 1 Insufficient cpu"}
        assert eventually(lambda: said() == expected), (said(), process.log[-2000:], theirs.end_of_log())
        writer.create(our_pod("small", cpu="1"))
        assert eventually(lambda: bound(writer, "small") == 1), process.log[-2000:]


def test_a_resize_that_is_deferred_holds_what_it_asks_for(
    plane: ControlPlane, writer: ClusterWriter, start: Started
) -> None:
    writer.create(our_node("n", cpu=4))
    process = start()
    grown = writer.create(our_pod("grown", cpu="1"))
    assert eventually(lambda: bound(writer) == 1), process.log[-2000:]
    path = "/api/v1/namespaces/default/pods/grown"
    with Api(plane) as api:
        larger = api.request("GET", path)
        larger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
        api.request("PUT", f"{path}/resize", larger)
    set_aside = {"cpu": "1", "memory": "128Mi"}
    container = running()["containerStatuses"][0] | {
        "allocatedResources": set_aside,
        "resources": {"requests": set_aside},
    }
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    writer.patch_status(grown, running() | {"containerStatuses": [container], "conditions": [pending]})
    writer.create(our_pod("next", cpu="2"))

    def waits() -> bool:
        return any("Insufficient cpu" in condition(one)[1] for one in writer.list_all("pods"))

    assert eventually(waits), process.log[-2000:]
    writer.patch_status(grown, {"conditions": [pending | {"reason": "Infeasible"}]})
    assert eventually(lambda: bound(writer) == 2), process.log[-2000:]
