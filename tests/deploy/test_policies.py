"""What RBAC cannot refuse the shipped policies do, on a real API server with the tokens of the accounts: pod templates,
labels of pods, whom the API server calls, tokens of other accounts. What the parts themselves write passes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from advisor.advice_requests import withdraw_body
from kube.client.pod_writes import MERGE, nomination_body
from kube.decoding.decoding import Kind, decode_object
from kube.objects.objects import PodInfo
from kube.status.pod_conditions import STRATEGIC_MERGE, WaitingCondition, condition_patch
from placement.gate_exemptions import ADVICE
from placement.gate_removal import release_body
from placement.preferred_nodes import PREFERRED, PreferredNode, preferred_terms
from scheduler.preemption.executor import condition_body
from testing.authority import Authority
from testing.servers.kustomize import DEPLOY
from testing.servers.shipped_rights import NAMESPACE
from tests.deploy.conftest import JSON, Policed

LATER: Final = "example.com/later"
"""A scheduling gate of somebody else."""

OWN_TERM: Final = {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
NODE_TERM: Final = preferred_terms([PreferredNode("node", 100)])[0]
_AFFINITY: Final = "/spec/affinity"
_TERMS: Final = f"{_AFFINITY}/nodeAffinity/{PREFERRED}"

JSON_PATCH: Final = "application/json-patch+json"
LOOPS: Final = "schedule"
ADVISOR: Final = "advisor"
RELEASING: Final = pytest.mark.parametrize("account", [ADVISOR, "webhook"])
"""Those that remove our gate, under one policy."""

WORKLOADS: Final = {
    "deployments": ("apps", "Deployment"),
    "statefulsets": ("apps", "StatefulSet"),
    "replicasets": ("apps", "ReplicaSet"),
    "jobs": ("batch", "Job"),
}
PODS: Final = "/api/v1/namespaces/default/pods"
POD: Final = f"{PODS}/train"
HELD: Final = f"{PODS}/held"
CONFIGURATION: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/forecast-scheduler"
SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
SECRET: Final = "forecast-scheduler-webhook-certificates"
STOLEN: Final = {"kubernetes.io/service-account.name": "forecast-scheduler-trainer"}


@pytest.fixture(scope="module")
def world(policed: Policed) -> Policed:
    """With a workload of each kind, two pods, one of them held, and what the webhook writes to."""
    policed.admin.apply(yaml.safe_load((DEPLOY / "base" / "webhook" / "configuration.yaml").read_text()))
    for resource in WORKLOADS:
        policed.create(_path(resource).rpartition("/")[0], _workload(resource))
    policed.create(SECRETS, _secret(SECRET))
    policed.create(PODS, _pod("train"))
    _held(policed, "held", affinity={"nodeAffinity": {PREFERRED: [OWN_TERM]}})
    return policed


def _path(resource: str) -> str:
    return f"/apis/{WORKLOADS[resource][0]}/v1/namespaces/default/{resource}/train"


def _workload(resource: str) -> dict[str, Any]:
    group, kind = WORKLOADS[resource]
    pod = {"restartPolicy": "Never" if kind == "Job" else "Always", "containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"app": "t"}}, "spec": pod}
    spec: dict[str, Any] = {"template": template}
    spec |= {"suspend": True} if kind == "Job" else {"replicas": 2, "selector": {"matchLabels": {"app": "t"}}}
    metadata = {"name": "train", "finalizers": ["example.com/kept"], "annotations": {"kept": "yes"}}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _pod(name: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "labels": {"app": "t"},
        "annotations": {"kept": "yes"},
        "finalizers": ["example.com/kept"],
    }
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _secret(name: str, kind: str = "kubernetes.io/tls", annotations: dict[str, str] | None = None) -> dict[str, Any]:
    data = {"tls.crt": "", "tls.key": ""} if kind == "kubernetes.io/tls" else {}
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": data}


WORKLOAD_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "pods under another account": {"spec": {"template": {"spec": {"serviceAccountName": "admin"}}}},
    "pods with the disks of nodes": {
        "spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}
    },
    "annotations of pods": {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}},
    "replicas past the scale subresource": {"spec": {"replicas": 7}},
    "no finalizers": {"metadata": {"finalizers": None}},
    "an owner that is gone, for the garbage collector": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}]}
    },
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "labels of others": {"metadata": {"labels": {"team": "mine"}}},
}


@pytest.mark.parametrize("attack", WORKLOAD_ATTACKS)
@pytest.mark.parametrize("resource", WORKLOADS)
def test_the_loops_cannot_change_what_pods_a_workload_makes(resource: str, attack: str, world: Policed) -> None:
    body = WORKLOAD_ATTACKS[attack]
    if resource == "jobs" and attack.startswith("replicas"):
        body = {"spec": {"suspend": False}}
    assert world.refuses(LOOPS, _path(resource), body)


@pytest.mark.parametrize("resource", WORKLOADS)
def test_the_loops_write_records_and_numbers(resource: str, world: Policed) -> None:
    record: dict[str, Any] = {
        "metadata": {
            "annotations": {"forecast-scheduler.io/tide-moves": "{}"},
            "labels": {"forecast-scheduler.io/tide": "training"},
        }
    }
    path = _path(resource)
    number = "parallelism" if resource == "jobs" else "replicas"
    if resource == "jobs":
        record["spec"] = {"parallelism": 5}
    world.write(LOOPS, path, record)
    if resource != "jobs":
        world.write(LOOPS, f"{path}/scale", {"spec": {"replicas": 5}})
    now = world.admin.send("GET", path)
    assert now["spec"][number] == 5
    assert now["metadata"]["annotations"]["forecast-scheduler.io/tide-moves"] == "{}"


POD_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "another Service, NetworkPolicy and controller": {"labels": {"app": "others"}},
    "no labels": {"labels": None},
    "annotations": {"annotations": {"kept": None}},
    "no finalizers": {"finalizers": None},
}


@pytest.mark.parametrize("attack", POD_ATTACKS)
def test_the_loops_change_no_metadata_of_pods_with_their_status(attack: str, world: Policed) -> None:
    """Failed before: the API server takes it along, with whatever pod of the cluster."""
    assert world.refuses(LOOPS, f"{POD}/status", {"metadata": POD_ATTACKS[attack], "status": {"message": "m"}})


def test_the_loops_write_what_becomes_of_a_pod(world: Policed) -> None:
    pod, _ = decode_object(Kind.PODS, json.dumps(world.admin.send("GET", POD)).encode())
    assert isinstance(pod, PodInfo)
    news = WaitingCondition.of(pod, "Unschedulable", "no room")
    for body, kind in (
        (nomination_body(pod, "node"), MERGE),
        (condition_patch(news, now=0.0, is_first=True), STRATEGIC_MERGE),
        (condition_body(pod, pod, 0.0), STRATEGIC_MERGE),
    ):
        world.write(LOOPS, f"{POD}/status", json.loads(body), kind)
    status = world.admin.send("GET", POD)["status"]
    assert status["nominatedNodeName"] == "node" and len(status["conditions"]) == 2


def _held(world: Policed, name: str, **spec: Any) -> tuple[str, PodInfo]:
    """A new pod under the name that our gate and one of others hold. Returns its path, and what we read of it."""
    path, made = f"{PODS}/{name}", _pod(name)
    made["spec"] |= {"schedulingGates": [{"name": LATER}, {"name": ADVICE}]} | spec
    world.admin.delete(made | {"metadata": made["metadata"] | {"namespace": "default"}})
    stored = world.create(PODS, made)
    pod, _ = decode_object(Kind.PODS, json.dumps(stored).encode())
    assert isinstance(pod, PodInfo)
    return path, pod


def _gates(manifest: dict[str, Any]) -> list[str]:
    return [one["name"] for one in manifest["spec"].get("schedulingGates", [])]


HELD_ATTACKS: Final[dict[str, list[dict[str, Any]]]] = {
    "another image": [{"op": "replace", "path": "/spec/containers/0/image", "value": "mine"}],
    "more tolerations": [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}],
    "other nodes": [{"op": "add", "path": "/spec/nodeSelector", "value": {"owner": "me"}}],
    "an end": [{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1}],
    "without the gate of others": [{"op": "remove", "path": "/spec/schedulingGates/0"}],
    "without any gate": [{"op": "remove", "path": "/spec/schedulingGates"}],
    "gates in another order": [
        {"op": "replace", "path": "/spec/schedulingGates", "value": [{"name": ADVICE}, {"name": LATER}]}
    ],
    "another Service, NetworkPolicy and controller": [{"op": "add", "path": "/metadata/labels/app", "value": "others"}],
    "no finalizers": [{"op": "remove", "path": "/metadata/finalizers"}],
    "an owner that is gone, for the garbage collector": [
        {
            "op": "add",
            "path": "/metadata/ownerReferences",
            "value": [{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}],
        }
    ],
    "an annotation of others": [{"op": "remove", "path": "/metadata/annotations/kept"}],
    "another annotation": [{"op": "add", "path": "/metadata/annotations/forecast-scheduler.io~1opt-out", "value": "x"}],
    "a node that it must have": [
        {
            "op": "add",
            "path": f"{_AFFINITY}/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
            "value": {"nodeSelectorTerms": [NODE_TERM["preference"]]},
        }
    ],
    "no affinity": [{"op": "remove", "path": _AFFINITY}],
    "without what it prefers": [{"op": "replace", "path": _TERMS, "value": [NODE_TERM]}],
    "what it prefers, by labels": [{"op": "add", "path": f"{_TERMS}/-", "value": OWN_TERM | {"weight": 8}}],
}


@RELEASING
@pytest.mark.parametrize("with_release", [False, True], ids=["alone", "with its release"])
@pytest.mark.parametrize("attack", HELD_ATTACKS)
def test_nothing_else_of_a_pod_is_changed(account: str, attack: str, with_release: bool, world: Policed) -> None:
    release = [
        {"op": "remove", "path": "/spec/schedulingGates/1"},
        {"op": "add", "path": "/metadata/annotations/forecast-scheduler.io~1advice", "value": "{}"},
    ]
    is_about_gates = any("schedulingGates" in one["path"] for one in HELD_ATTACKS[attack])
    body = [*(release[is_about_gates:] if with_release else []), *HELD_ATTACKS[attack]]
    assert world.refuses(account, HELD, body, JSON_PATCH)


@RELEASING
def test_our_gate_is_removed_with_its_annotation_also_again_and_of_a_large_pod(account: str, world: Policed) -> None:
    many = [
        {"name": f"c-{i}", "image": "i", "env": [{"name": f"E{j}", "value": "v" * 50} for j in range(40)]}
        for i in range(100)
    ]
    for name, spec in (("released", {}), ("large", {"containers": many})):
        path, pod = _held(world, f"{name}-{account}", **spec)
        for note in ('{"node":"node"}', '{"node":null}'):  # the second time there is no gate of ours any more
            body = json.loads(release_body(pod, note))
            now = world.write(account, path, body, STRATEGIC_MERGE)
            assert (_gates(now), now["metadata"]["annotations"]) == ([LATER], {"kept": "yes", ADVICE: note})


@pytest.mark.parametrize("own", [[], [OWN_TERM]])
def test_the_advisor_adds_nodes_that_a_pod_prefers_together_with_the_release(
    own: list[dict[str, Any]], world: Policed
) -> None:
    path, pod = _held(world, "preferring", **({"affinity": {"nodeAffinity": {PREFERRED: own}}} if own else {}))
    terms = [*own, *preferred_terms([PreferredNode(f"node-{i}", 100 - i) for i in range(16)])]
    now = world.write(ADVISOR, path, json.loads(release_body(pod, "{}", preferred=terms)), STRATEGIC_MERGE)
    assert (_gates(now), now["spec"]["affinity"]) == ([LATER], {"nodeAffinity": {PREFERRED: terms}})


STATUS_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "labels": {"metadata": {"labels": {"app": "others"}}},
    "annotations": {"metadata": {"annotations": {ADVICE: "{}"}}},
    "no finalizers": {"metadata": {"finalizers": None}},
    "an end": {"status": {"phase": "Failed"}},
    "an address": {"status": {"podIPs": [{"ip": "192.0.2.1"}], "podIP": "192.0.2.1"}},
    "ready": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    "a message": {"status": {"message": "m"}},
}


@pytest.mark.parametrize("attack", STATUS_ATTACKS)
def test_the_advisor_changes_nothing_of_a_status_but_the_nomination(attack: str, world: Policed) -> None:
    body = {"status": {"nominatedNodeName": "node"} | STATUS_ATTACKS[attack].get("status", {})}
    assert world.refuses(ADVISOR, f"{HELD}/status", STATUS_ATTACKS[attack] | body)


def test_the_advisor_nominates_and_withdraws(world: Policed) -> None:
    path, pod = _held(world, "nominated")
    for body, nominated in ((nomination_body(pod, "node"), "node"), (nomination_body(pod, "other"), "other")):
        now = world.write(ADVISOR, f"{path}/status", json.loads(body))
        assert now["status"]["nominatedNodeName"] == nominated
    version = now["metadata"]["resourceVersion"]
    now = world.write(ADVISOR, f"{path}/status", json.loads(withdraw_body(pod, version)))
    assert "nominatedNodeName" not in now["status"]


def test_everybody_else_writes_as_before(world: Policed) -> None:
    """`advise --release` of an administrator, too."""
    path, pod = _held(world, "released-by-hand")
    world.admin.send("PATCH", path, json.loads(release_body(pod, "{}")), kind=STRATEGIC_MERGE)
    world.admin.send("PATCH", path, {"metadata": {"labels": {"more": "labels"}}}, kind=MERGE)
    template = {"spec": {"template": {"metadata": {"labels": {"b": "c"}}}}}
    world.admin.send("PATCH", _path("deployments"), template, kind=MERGE)


def test_a_binding_gives_a_pod_annotations_and_labels_as_the_page_says(world: Policed) -> None:
    world.create(PODS, _pod("waits"))
    metadata = {"name": "waits", "annotations": {"kept": "no"}, "labels": {"team": "mine"}}
    target = {"apiVersion": "v1", "kind": "Node", "name": "node"}
    path = f"{POD.rpartition('/')[0]}/waits"
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    world.write(LOOPS, f"{path}/binding", binding, JSON, "POST")
    now = world.admin.send("GET", path)["metadata"]
    assert now["annotations"]["kept"] == "no" and now["labels"] == {"app": "t", "team": "mine"}


def _replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "add", "path": path, "value": value}]


_OF_SECRETS: Final = {
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets"],
}  # fmt: skip
_ELSEWHERE: Final = {"namespace": "default", "name": "mine", "path": "/", "port": 443}
CONFIGURATION_ATTACKS: Final[dict[str, Any]] = {
    "about secrets": _replace("/webhooks/0/rules/0", _OF_SECRETS),
    "another service": _replace("/webhooks/0/clientConfig/service", _ELSEWHERE),
    "a URL": _replace("/webhooks/0/clientConfig", {"url": "https://192.0.2.1/"}),
    "another path": _replace("/webhooks/0/clientConfig/service/path", "/elsewhere"),
    "pods of all namespaces": _replace("/webhooks/0/namespaceSelector", {}),
    "pods of daemon sets": _replace("/webhooks/0/matchConditions", []),
    "fail": _replace("/webhooks/0/failurePolicy", "Fail"),
    "no webhook": _replace("/webhooks", []),
    "two": [{"op": "copy", "from": "/webhooks/0", "path": "/webhooks/-"}, *_replace("/webhooks/1/name", "two.b.c")],
    "another name": _replace("/webhooks/0/name", "other.example.com"),
    "an annotation for an injector": _replace("/metadata/annotations", {"cert-manager.io/inject-ca-from": "a/b"}),
}


@pytest.mark.parametrize("attack", CONFIGURATION_ATTACKS)
def test_the_webhook_cannot_have_itself_asked_about_anything_else(attack: str, world: Policed) -> None:
    assert world.refuses("webhook", CONFIGURATION, CONFIGURATION_ATTACKS[attack], JSON_PATCH)


def test_the_webhook_writes_ca_bundles(world: Policed, tmp_path: Path) -> None:
    pem = base64.b64encode(Authority(tmp_path, "ca").ca.read_bytes()).decode()
    for text in (pem, "", pem):
        world.write("webhook", CONFIGURATION, _replace("/webhooks/0/clientConfig/caBundle", text), JSON_PATCH)
    assert world.admin.send("GET", CONFIGURATION)["webhooks"][0]["clientConfig"]["caBundle"] == pem


@pytest.mark.parametrize(
    "secret",
    [
        _secret("stolen", "kubernetes.io/service-account-token", STOLEN),
        _secret(SECRET, "kubernetes.io/service-account-token", STOLEN),
        _secret("another"),
    ],
    ids=["a token of another account", "a token under its own name", "another name"],
)
def test_the_webhook_cannot_have_tokens_of_other_accounts_made(secret: dict[str, Any], world: Policed) -> None:
    world.admin.send("DELETE", f"{SECRETS}/{SECRET}")
    try:
        assert world.refuses("webhook", SECRETS, secret, JSON, "POST")
    finally:
        world.write("webhook", SECRETS, _secret(SECRET), JSON, "POST")
