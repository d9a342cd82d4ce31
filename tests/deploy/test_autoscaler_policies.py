"""What RBAC cannot refuse to the autoscaler its policies do, on a real API server with the token of its account."""

from __future__ import annotations

from typing import Any, Final

import pytest

from autoscaling.nodes.guard import KEPT_UNTIL
from autoscaling.replicas.horizontal_autoscalers import ASKS_LABEL
from autoscaling.replicas.horizontal_autoscalers import ORIGINAL as MINIMUM_BEFORE
from autoscaling.replicas.horizontal_autoscalers import RAISED as MINIMUM_NOW
from autoscaling.requests.pod_resources import ORIGINAL, PROOF, RESIZE_LABEL, RESIZED_LABEL
from autoscaling.requests.proven_records import SECRET
from kube.client.pod_writes import MERGE
from kube.status.pod_conditions import STRATEGIC_MERGE
from testing.servers.applying import NotApplied
from testing.servers.cluster_objects import node, pod, running
from testing.waiting import eventually
from tests.deploy.conftest import Policed

PART: Final = "autoscaler"
NODE: Final = "/api/v1/nodes/a"
PODS: Final = "/api/v1/namespaces/default/pods"
KARPENTER: Final = "karpenter.sh/do-not-disrupt"
MARK: Final = {"metadata": {"annotations": {KEPT_UNTIL: "2026-01-01T00:00:00Z", KARPENTER: "true"}}}
RECORD: Final = {"metadata": {"annotations": {ORIGINAL: "{}", PROOF: "0"}, "labels": {RESIZED_LABEL: "true"}}}


@pytest.fixture
def world(policed: Policed) -> Policed:
    """With node a, made anew."""
    policed.writer.delete_many(policed.writer.list_all("nodes"))
    made = node("a")
    made["metadata"]["annotations"] = {"kept": "yes"}
    policed.writer.create(made)
    return policed


def _pod(world: Policed, name: str, *, asks: bool, **spec: Any) -> str:
    """Make it anew; returns its path."""
    world.writer.delete_many(one for one in world.writer.list_all("pods") if one["metadata"]["name"] == name)
    status = running()
    status["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1", "memory": "128Mi"}}
    labels = {RESIZE_LABEL: "true"} if asks else {"app": "t"}
    made = pod(name, node="a", cpu="1", limits={"cpu": "4"}, labels=labels, annotations={"kept": "yes"}, status=status)
    world.writer.create(made | {"spec": made["spec"] | spec})
    return f"{PODS}/{name}"


NODE_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "no more pods": {"spec": {"unschedulable": True}},
    "taints": {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}},
    "labels": {"metadata": {"labels": {"pool": "mine"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/mine"]}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "a mark that is not ours": {"metadata": {"annotations": {KARPENTER: "true"}}},
}


@pytest.mark.parametrize("attack", NODE_ATTACKS)
def test_of_a_node_nothing_changes_but_our_mark(attack: str, world: Policed) -> None:
    assert world.refuses(PART, NODE, NODE_ATTACKS[attack])


def test_our_mark_comes_and_goes_and_that_of_others_stays(world: Policed) -> None:
    world.write(PART, NODE, MARK)
    world.write(PART, NODE, {"metadata": {"annotations": dict.fromkeys(MARK["metadata"]["annotations"])}})
    world.admin.send("PATCH", NODE, {"metadata": {"annotations": {KARPENTER: "true"}}}, kind=MERGE)
    assert world.refuses(PART, NODE, {"metadata": {"annotations": {KARPENTER: None}}})
    assert world.refuses(PART, NODE, MARK), "taken over by a mark of ours, it could be removed next"


POD_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "another image": {"spec": {"containers": [{"name": "main", "image": "mine:1"}]}},
    "labels": {"metadata": {"labels": {"app": "mine"}}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "the owner's consent": {"metadata": {"labels": {RESIZE_LABEL: "true"}}},
    "an owner that is gone": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}]}
    },
    "a record of requests": RECORD,
    "a proof": {"metadata": {"annotations": {PROOF: "0"}}},
}


@pytest.mark.parametrize("attack", POD_ATTACKS)
def test_a_pod_that_does_not_ask_stays_as_it_is(attack: str, world: Policed) -> None:
    assert world.refuses(PART, _pod(world, "quiet", asks=False), POD_ATTACKS[attack], STRATEGIC_MERGE)


def _resized(part: str = "containers", **resources: dict[str, str]) -> dict[str, Any]:
    return {"spec": {part: [{"name": "main" if part == "containers" else "side", "resources": resources}]}}


def test_a_pod_is_resized_only_once_its_requests_are_recorded(world: Policed) -> None:
    path = _pod(world, "asking", asks=True)
    less = _resized(requests={"cpu": "500m"})
    assert world.refuses(PART, f"{path}/resize", less, STRATEGIC_MERGE)
    world.write(PART, path, RECORD)
    world.write(PART, f"{path}/resize", less, STRATEGIC_MERGE)
    assert world.refuses(PART, f"{path}/resize", _resized(limits={"cpu": "8"}), STRATEGIC_MERGE)
    requests = world.admin.send("GET", path)["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "500m", "memory": "128Mi"}


def test_a_pod_of_a_namespace_that_asks_may_be_recorded(world: Policed) -> None:
    path = _pod(world, "quiet", asks=False)
    declines = _pod(world, "declining", asks=False)
    space = "/api/v1/namespaces/default"

    def is_recorded() -> bool:
        try:
            world.write(PART, path, RECORD)
        except NotApplied:
            return False
        return True

    world.admin.send("PATCH", space, {"metadata": {"labels": {RESIZE_LABEL: "true"}}}, kind=MERGE)
    assert eventually(is_recorded)
    world.admin.send("PATCH", declines, {"metadata": {"labels": {RESIZE_LABEL: "false"}}}, kind=MERGE)
    assert world.refuses(PART, declines, RECORD), "the pod's own label wins"
    world.admin.send("PATCH", space, {"metadata": {"labels": {RESIZE_LABEL: None}}}, kind=MERGE)
    assert world.refuses(PART, path, {"metadata": {"annotations": {ORIGINAL: "{ }"}}})
    world.write(
        PART, path, {"metadata": {"annotations": {ORIGINAL: None, PROOF: None}, "labels": {RESIZED_LABEL: None}}}
    )


TENANTS_REFUSAL: Final = "only the autoscaler of forecast-scheduler may record requests"


def _is_refused_to_tenants(world: Policed, path: str) -> bool:
    """Policies count a moment after they were made."""
    try:
        world.tenant("default").send("PATCH", f"{path}?dryRun=All", RECORD, kind=MERGE)
    except NotApplied as error:
        return TENANTS_REFUSAL in error.message
    return False


def test_no_tenant_records_requests_and_a_pod_with_half_a_record_is_not_resized(world: Policed) -> None:
    path = _pod(world, "quiet", asks=False)
    assert eventually(lambda: _is_refused_to_tenants(world, path))
    tenant = world.tenant("default")
    made = pod("with-a-record", labels={RESIZED_LABEL: "true"}, annotations={ORIGINAL: "{}"})
    with pytest.raises(NotApplied, match=TENANTS_REFUSAL):
        tenant.send("POST", PODS, made, kind="application/json")
    tenant.send("POST", PODS, pod("copied", labels={"app": "t"}, annotations={ORIGINAL: "{}"}), kind="application/json")
    tenant.send("PATCH", path, {"metadata": {"annotations": {ORIGINAL: '{"main":{"cpu":5}}'}}}, kind=MERGE)
    assert world.refuses(PART, f"{path}/resize", _resized(requests={"cpu": "3"}), STRATEGIC_MERGE), "it never asked"


def test_a_tenant_changes_a_recorded_pod_and_may_remove_the_record(world: Policed) -> None:
    assert eventually(lambda: _is_refused_to_tenants(world, _pod(world, "quiet", asks=False)))
    path = _pod(world, "asking", asks=True)
    world.write(PART, path, RECORD)
    tenant = world.tenant("default")
    tenant.send("PATCH", path, {"metadata": {"labels": {"app": "x"}}}, kind=MERGE)
    with pytest.raises(NotApplied, match=TENANTS_REFUSAL):
        tenant.send("PATCH", path, {"metadata": {"annotations": {ORIGINAL: '{"main":{"cpu":5}}'}}}, kind=MERGE)
    tenant.send("PATCH", path, {"metadata": {"annotations": {ORIGINAL: None, PROOF: None}}}, kind=MERGE)


def test_of_secrets_the_autoscaler_makes_one(world: Policed) -> None:
    secrets = "/api/v1/namespaces/forecast-scheduler/secrets"

    def secret(name: str, kind: str) -> dict[str, Any]:
        account = {"kubernetes.io/service-account.name": "forecast-scheduler-schedule"}
        return {"metadata": {"name": name, "annotations": account}, "type": kind}

    for made in (secret("other", "Opaque"), secret(SECRET, "kubernetes.io/service-account-token")):
        assert world.refuses(PART, secrets, made, "application/json", "POST")
    world.write(PART, secrets, secret(SECRET, "Opaque"), "application/json", "POST")


def test_sidecars_are_not_resized(world: Policed) -> None:
    sidecar = {"name": "side", "image": "side:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    path = _pod(world, "with-sidecar", asks=True, initContainers=[sidecar])
    world.write(PART, path, RECORD)
    less = _resized("initContainers", requests={"cpu": "500m"})
    assert world.refuses(PART, f"{path}/resize", less, STRATEGIC_MERGE)


@pytest.mark.parametrize(
    ("priority_class", "refused"),
    [("system-cluster-critical", True), (None, True), ("forecast-scheduler-buffer", False)],
)
def test_pods_of_buffers_take_the_place_of_no_other(priority_class: str | None, refused: bool, world: Policed) -> None:
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

    assert eventually(is_as_expected)


HPA: Final = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web"
UP: Final = {
    "metadata": {"annotations": {MINIMUM_BEFORE: "2", MINIMUM_NOW: "6"}},
    "spec": {"minReplicas": 6},
}


def _autoscaler(world: Policed, *, asks: bool) -> None:
    """Make it anew: 2 to 20 replicas."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    world.admin.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {
                "namespace": "default",
                "name": "web",
                "labels": {ASKS_LABEL: str(asks).lower()},
                "annotations": {"kept": "yes"},
            },
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 20},
        }
    )


MINIMUM_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "the most": {"spec": {"maxReplicas": 200}},
    "another target": {"spec": {"scaleTargetRef": {"name": "mine"}}},
    "labels": {"metadata": {"labels": {ASKS_LABEL: "true"}}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "no record": {"spec": {"minReplicas": 6}},
    "fewer": {"metadata": {"annotations": {MINIMUM_BEFORE: "2", MINIMUM_NOW: "1"}}, "spec": {"minReplicas": 1}},
    "a false record": {
        "metadata": {"annotations": {MINIMUM_BEFORE: "1", MINIMUM_NOW: "6"}},
        "spec": {"minReplicas": 6},
    },
}


@pytest.mark.parametrize("attack", MINIMUM_ATTACKS)
def test_of_an_autoscaler_only_the_minimum_rises_with_a_true_record(attack: str, world: Policed) -> None:
    _autoscaler(world, asks=attack != "labels")
    assert world.refuses(PART, HPA, MINIMUM_ATTACKS[attack])


def test_a_minimum_rises_where_its_owner_asks_and_goes_back_in_any_case(world: Policed) -> None:
    _autoscaler(world, asks=False)
    assert world.refuses(PART, HPA, UP)
    _autoscaler(world, asks=True)
    world.write(PART, HPA, UP)
    higher = {"metadata": {"annotations": {MINIMUM_BEFORE: "6", MINIMUM_NOW: "8"}}, "spec": {"minReplicas": 8}}
    assert world.refuses(PART, HPA, higher), "the original would be lost"
    world.admin.send("PATCH", HPA, {"metadata": {"labels": {ASKS_LABEL: None}}}, kind=MERGE)
    down = {"metadata": {"annotations": {MINIMUM_BEFORE: None, MINIMUM_NOW: None}}, "spec": {"minReplicas": 2}}
    world.write(PART, HPA, down)
