"""Policies from a ConfigMap on a real API server: created, changed, broken, deleted, made anew; what is told of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import urllib3
import yaml

from forecast_scheduler.commands.policy.follow_policies import LivePolicies, open_policies
from forecast_scheduler.settings.document import Settings
from kube.decoding.decoding import decode_pod
from placement.policies.provider import PolicyProvider
from placement.policies.status import OutcomeKind
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from tests.cluster.stored_objects import eventually

ROOT = Path(__file__).parents[2]
POD = decode_pod({"metadata": {"name": "some", "namespace": "default"}})
BROKEN = "default: b\npolicies: {a: {}}"

Opened = Callable[..., LivePolicies]


def policies_of(name: str) -> str:
    return f"default: {name}\npolicies: {{{name}: {{scores: {{weights: {{balance: 1}}}}}}}}"


def config_map(name: str, text: str) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policies.yaml": text}}


@pytest.fixture
def opened(plane: ControlPlane) -> Iterator[Opened]:
    """opened(name) -> policies that follow the ConfigMap of that name."""
    with ExitStack() as stack:

        def open_one(name: str, kubeconfig: Path | None = None) -> LivePolicies:
            settings = Settings.model_validate({"policies": {"config_map": f"default/{name}"}})
            live = stack.enter_context(open_policies(settings, kubeconfig or plane.kubeconfig))
            assert live is not None
            return live

        yield open_one


def events_of(plane: ControlPlane, name: str) -> dict[str, Manifest]:
    """Events on an object, the last one by reason."""
    with urllib3.PoolManager(ca_certs=str(plane.ca_file)) as pool:
        answer = pool.request(
            "GET",
            f"{plane.url}/apis/events.k8s.io/v1/namespaces/default/events",
            headers={"Authorization": f"Bearer {plane.token}"},
        )
        items = json.loads(answer.data)["items"]
    return {event["reason"]: event for event in items if event["regarding"]["name"] == name}


def in_effect(provider: PolicyProvider) -> str:
    return provider.choose(POD).policy.name


def test_a_config_map_through_its_life(plane: ControlPlane, writer: ClusterWriter, opened: Opened) -> None:
    provider = opened("life").provider
    assert in_effect(provider) == "settings"  # nothing there yet, and nothing waits for it
    refusal = provider.status.refusal
    assert refusal is not None and refusal.message == "there is no ConfigMap default/life"

    created = writer.create(config_map("life", policies_of("a")))
    assert eventually(lambda: in_effect(provider) == "a")
    assert provider.status.refusal is None
    assert provider.status.version == created["metadata"]["resourceVersion"]
    assert eventually(lambda: "PolicyAccepted" in events_of(plane, "life"))

    writer.patch(created, {"data": {"policies.yaml": policies_of("b")}})
    assert eventually(lambda: in_effect(provider) == "b")

    writer.patch(created, {"data": {"policies.yaml": BROKEN}})
    assert eventually(lambda: provider.status.refusal is not None)
    assert in_effect(provider) == "b"
    assert eventually(lambda: "PolicyRefused" in events_of(plane, "life"))
    refused = events_of(plane, "life")["PolicyRefused"]
    assert refused["note"].startswith("default: there is no policy 'b'") and refused["type"] == "Warning"
    assert refused["regarding"]["uid"] == created["metadata"]["uid"]

    writer.delete(created)
    assert eventually(lambda: provider.status.outcomes[OutcomeKind.GONE] == 2)
    assert in_effect(provider) == "b"
    assert eventually(lambda: "PolicyGone" in events_of(plane, "life"))

    writer.create(config_map("life", policies_of("b")))  # what is in effect: it is good again all the same
    assert eventually(lambda: provider.status.refusal is None)
    writer.patch(created, {"metadata": {"labels": {"touched": "yes"}}})
    writer.patch(created, {"data": {"policies.yaml": policies_of("c")}})
    assert eventually(lambda: in_effect(provider) == "c")
    assert provider.status.outcomes[OutcomeKind.ACCEPTED] == 4


def rights() -> tuple[str, list[Manifest]]:
    """The ConfigMap that docs/use/policies.md has the extender follow, and the rights it gives for that."""
    text = (ROOT / "docs/use/policies.md").read_text()
    (name,) = set(re.findall(r"--policies configmap:[-\w]+/([-\w]+)", text))
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "kind: Role\n" in block)
    return name, list(yaml.safe_load_all(block))


def test_the_rights_that_are_documented_are_enough(plane: ControlPlane, writer: ClusterWriter, opened: Opened) -> None:
    name, manifests = rights()
    writer.create(config_map(name, policies_of("a")))
    kubeconfig = plane.write_kubeconfig("nobody", plane.powerless_token)
    provider = opened(name, kubeconfig).provider
    refusal = provider.status.refusal
    assert in_effect(provider) == "settings" and refusal is not None and "403" in refusal.message
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}
    with urllib3.PoolManager(ca_certs=str(plane.ca_file)) as pool:
        for manifest in manifests:
            if "subjects" in manifest:
                manifest["subjects"] = [user]
            scope = ""
            if not manifest["kind"].startswith("Cluster"):
                manifest["metadata"]["namespace"] = "default"
                scope = "namespaces/default/"
            answer = pool.request(
                "POST",
                f"{plane.url}/apis/{manifest['apiVersion']}/{scope}{manifest['kind'].lower()}s",
                body=json.dumps(manifest),
                headers={"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"},
            )
            assert answer.status == 201, answer.data
    assert eventually(lambda: in_effect(provider) == "a", 60)
    assert provider.status.refusal is None
    writer.patch(config_map(name, ""), {"data": {"policies.yaml": BROKEN}})
    assert eventually(lambda: "PolicyRefused" in events_of(plane, name))
