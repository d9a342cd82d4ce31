"""`schedule` on a real API server, pods with claims that wait for their first consumer.

There are no volume controllers: the tests play them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually

SELECTED = "volume.kubernetes.io/selected-node"


def storage_class(name: str, provisioner: str) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, of_class: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def volume(name: str, of_class: str, on: str) -> Manifest:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of_class,
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
        "status": {"phase": "Available"},
    }


def using(name: str, claim_name: str) -> Manifest:
    made = pod(name, scheduler_name="forecast-scheduler")
    made["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return made


class Controllers:
    """What the volume controllers see and do."""

    def __init__(self, writer: ClusterWriter) -> None:
        self._writer = writer

    def find(self, plural: str, name: str) -> Manifest:
        (found,) = [one for one in self._writer.list_all(plural) if one["metadata"]["name"] == name]
        return found

    def selected(self, name: str) -> str:
        """The node for which the claim is to be provisioned."""
        annotations = self.find("persistentvolumeclaims", name)["metadata"].get("annotations", {})
        return str(annotations.get(SELECTED, ""))

    def node_of(self, name: str) -> str:
        """Of a pod."""
        return str(self.find("pods", name)["spec"].get("nodeName", ""))

    def nominated(self, name: str) -> str:
        """Where the status of a pod says that it will go."""
        return str(self.find("pods", name)["status"].get("nominatedNodeName", ""))

    def bind(self, name: str, volume_name: str) -> None:
        """Volume and claim become each other's."""
        one = self._writer.patch(
            self.find("persistentvolumeclaims", name),
            {
                "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": volume_name},
            },
        )
        self._writer.patch_status(self.find("persistentvolumes", volume_name), {"phase": "Bound"})
        self._writer.patch_status(one, {"phase": "Bound"})

    def provision(self, name: str, on: str) -> None:
        """Make a volume for the claim and bind it."""
        uid = self.find("persistentvolumeclaims", name)["metadata"]["uid"]
        made = volume(f"made-{name}", "made", on)
        made["spec"]["claimRef"] = {"namespace": "default", "name": name, "uid": uid}
        self._writer.create(made)
        self.bind(name, f"made-{name}")


@pytest.fixture(scope="module")
def process(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScorerProcess]:
    with ClusterWriter(plane) as writer:
        writer.create_many([node("a"), node("b"), storage_class("made", "example.com/made")])
    arguments = ("--kubeconfig", plane.kubeconfig, "--no-leader-elect", "--domain", "")
    with ScorerProcess(tmp_path_factory.mktemp("volumes"), *arguments, command="schedule", settings={}) as running:
        yield running


@pytest.fixture
def controllers(writer: ClusterWriter) -> Controllers:
    return Controllers(writer)


def sees(process: ScorerProcess, condition: Callable[[], bool]) -> None:
    assert eventually(condition), process.log[-3000:]


def test_a_pod_is_bound_once_its_claim_is(
    process: ScorerProcess, writer: ClusterWriter, controllers: Controllers
) -> None:
    writer.create_many([claim("data", "made"), using("first", "data")])
    sees(process, lambda: controllers.selected("data") != "")
    chosen = controllers.selected("data")
    # Somebody else is bound meanwhile: nobody waits for those that wait for their volumes.
    writer.create(pod("plain", scheduler_name="forecast-scheduler"))
    sees(process, lambda: controllers.node_of("plain") != "")
    assert controllers.node_of("first") == ""
    sees(process, lambda: controllers.nominated("first") == chosen)  # so that no autoscaler deletes the node
    controllers.provision("data", chosen)
    sees(process, lambda: controllers.node_of("first") == chosen)
    assert controllers.nominated("first") == "" == controllers.nominated("plain")
