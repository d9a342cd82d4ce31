"""What RBAC cannot refuse to the autoscaler its policies do, on a real API server with the token of its account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from autoscaling.nodes.node_marks import KEPT_UNTIL
from autoscaling.requests.pod_resources import ORIGINAL, RESIZE_LABEL, RESIZED_LABEL
from kube.client.pod_writes import MERGE
from kube.status.pod_conditions import STRATEGIC_MERGE
from testing.processes.scorer_process import eventually
from testing.servers.applying import Applier, Manifest, NotApplied
from testing.servers.audit import Audit
from testing.servers.cluster_objects import ClusterWriter, node, pod, running
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import built_from
from tests.deploy.rights import Account, Installed, is_refused

NODE: Final = "/api/v1/nodes/a"
PODS: Final = "/api/v1/namespaces/default/pods"
KARPENTER: Final = "karpenter.sh/do-not-disrupt"
MARK: Final = {"metadata": {"annotations": {KEPT_UNTIL: "2026-01-01T00:00:00Z", KARPENTER: "true"}}}
RECORD: Final = {"metadata": {"annotations": {ORIGINAL: "{}"}, "labels": {RESIZED_LABEL: "true"}}}


@dataclass(frozen=True)
class World:
    """admin may everything, the autoscaler what is shipped."""

    admin: Applier
    autoscaler: Applier
    writer: ClusterWriter
    manifests: Sequence[Manifest]

    def make_node(self) -> None:
        """Make node a anew."""
        self.writer.delete_many(self.writer.list_all("nodes"))
        made = node("a")
        made["metadata"]["annotations"] = {"kept": "yes"}
        self.writer.create(made)

    def make_pod(self, name: str, *, asks: bool) -> str:
        """Make it anew; returns its path."""
        self.writer.delete_many(one for one in self.writer.list_all("pods") if one["metadata"]["name"] == name)
        status = running()
        status["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1", "memory": "128Mi"}}
        labels = {RESIZE_LABEL: "true"} if asks else {"app": "t"}
        made = pod(
            name, node="a", cpu="1", limits={"cpu": "4"}, labels=labels, annotations={"kept": "yes"}, status=status
        )
        self.writer.create(made)
        return f"{PODS}/{name}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("policies")
    components = ["components/autoscaler", "components/autoscaler-writes"]
    manifests = built_from(directory / "built", resources=["overlays/observe"], components=components)
    with control_plane() as plane, Applier(plane) as admin, ClusterWriter(plane) as writer:
        installed = Installed(plane, admin, Audit(directory, []), manifests)
        token = installed.token("forecast-scheduler-autoscaler")
        with Applier(Account(plane.url, token, plane.ca_file)) as autoscaler:
            made = World(admin, autoscaler, writer, manifests)
            made.make_node()
            # A policy counts a moment after it was written.
            assert eventually(lambda: _refused(made.autoscaler, NODE, {"spec": {"unschedulable": True}}), 30)
            made.make_node()
            yield made
            writer.delete_many(writer.list_all("pods"))


def _refused(by: Applier, path: str, change: Any, kind: str = MERGE) -> bool:
    return is_refused(by, path, change, "forecast-scheduler-autoscaler-", kind=kind)


NODE_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "no more pods": {"spec": {"unschedulable": True}},
    "taints": {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}},
    "labels": {"metadata": {"labels": {"pool": "mine"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/mine"]}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "a mark that is not ours": {"metadata": {"annotations": {KARPENTER: "true"}}},
}


@pytest.mark.parametrize("attack", NODE_ATTACKS)
def test_of_a_node_nothing_changes_but_our_mark(attack: str, world: World) -> None:
    before = world.admin.send("GET", NODE)["metadata"].get("annotations")
    assert _refused(world.autoscaler, NODE, NODE_ATTACKS[attack])
    assert world.admin.send("GET", NODE)["metadata"].get("annotations") == before


def test_our_mark_comes_and_goes_and_that_of_others_stays(world: World) -> None:
    gone = {"metadata": {"annotations": dict.fromkeys(MARK["metadata"]["annotations"])}}
    assert not _refused(world.autoscaler, NODE, MARK)
    assert not _refused(world.autoscaler, NODE, gone)
    world.admin.send("PATCH", NODE, {"metadata": {"annotations": {KARPENTER: "true"}}}, kind=MERGE)
    assert _refused(world.autoscaler, NODE, {"metadata": {"annotations": {KARPENTER: None}}})
    assert _refused(world.autoscaler, NODE, MARK), "taken over by a mark of ours, it could be removed next"
    world.make_node()


POD_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "another image": {"spec": {"containers": [{"name": "main", "image": "mine:1"}]}},
    "labels": {"metadata": {"labels": {"app": "mine"}}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "the owner's consent": {"metadata": {"labels": {RESIZE_LABEL: "true"}}},
    "an owner that is gone": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}]}
    },
    "a record of requests": RECORD,
}


@pytest.mark.parametrize("attack", POD_ATTACKS)
def test_a_pod_that_does_not_ask_stays_as_it_is(attack: str, world: World) -> None:
    path = world.make_pod("quiet", asks=False)
    assert _refused(world.autoscaler, path, POD_ATTACKS[attack], STRATEGIC_MERGE)


def _resized(**resources: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": resources}]}}


def test_a_pod_is_resized_only_once_its_requests_are_recorded(world: World) -> None:
    path = world.make_pod("asking", asks=True)
    less = _resized(requests={"cpu": "500m"})
    assert _refused(world.autoscaler, f"{path}/resize", less, STRATEGIC_MERGE)
    assert not _refused(world.autoscaler, path, RECORD)
    assert not _refused(world.autoscaler, f"{path}/resize", less, STRATEGIC_MERGE)
    assert _refused(world.autoscaler, f"{path}/resize", _resized(limits={"cpu": "8"}), STRATEGIC_MERGE)
    requests = world.admin.send("GET", path)["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "500m", "memory": "128Mi"}


def test_a_pod_of_a_namespace_that_asks_may_be_recorded(world: World) -> None:
    path = world.make_pod("quiet", asks=False)
    space = "/api/v1/namespaces/default"
    world.admin.send("PATCH", space, {"metadata": {"labels": {RESIZE_LABEL: "true"}}}, kind=MERGE)
    assert eventually(lambda: not _refused(world.autoscaler, path, RECORD), 30)
    declines = world.make_pod("declining", asks=False)
    world.admin.send("PATCH", declines, {"metadata": {"labels": {RESIZE_LABEL: "false"}}}, kind=MERGE)
    assert _refused(world.autoscaler, declines, RECORD), "the pod's own label wins"
    world.admin.send("PATCH", space, {"metadata": {"labels": {RESIZE_LABEL: None}}}, kind=MERGE)
    assert eventually(lambda: _refused(world.autoscaler, path, {"metadata": {"annotations": {ORIGINAL: "{ }"}}}), 30)
    back = {"metadata": {"annotations": {ORIGINAL: None}, "labels": {RESIZED_LABEL: None}}}
    assert not _refused(world.autoscaler, path, back)


def test_sidecars_are_not_resized(world: World) -> None:
    made = pod("with-sidecar", node="a", cpu="1", labels={RESIZE_LABEL: "true"}, status=running())
    sidecar = {"name": "side", "image": "side:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    made["spec"]["initContainers"] = [sidecar]
    made["status"]["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1", "memory": "128Mi"}}
    world.writer.create(made)
    path = f"{PODS}/with-sidecar"
    assert not _refused(world.autoscaler, path, RECORD)
    less = {"spec": {"initContainers": [{"name": "side", "resources": {"requests": {"cpu": "500m"}}}]}}
    assert _refused(world.autoscaler, f"{path}/resize", less, STRATEGIC_MERGE)


@pytest.mark.parametrize(
    ("priority_class", "refused"),
    [("system-cluster-critical", True), (None, True), ("forecast-scheduler-buffer", False)],
)
def test_pods_of_buffers_take_the_place_of_no_other(priority_class: str | None, refused: bool, world: World) -> None:
    made = pod(f"buffer-{refused}-{priority_class}".lower(), namespace="forecast-scheduler-buffers")
    if priority_class is not None:
        made["spec"]["priorityClassName"] = priority_class
    container = made["spec"]["containers"][0]
    container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    made["spec"]["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    path = "/api/v1/namespaces/forecast-scheduler-buffers/pods"

    priority_classes = [one for one in world.manifests if one["kind"] == "PriorityClass"]
    world.admin.apply_all(priority_classes)

    def is_as_expected() -> bool:
        """A policy counts a moment after it was written, and so does a PriorityClass."""
        try:
            world.admin.send("POST", path, made, kind="application/json")
        except NotApplied as error:
            return refused and "need a PriorityClass below 0" in error.message
        return not refused

    assert eventually(is_as_expected, 30)
