"""Policies from a ConfigMap on a real API server, with the rights that are documented."""

from __future__ import annotations

import re

import yaml

from forecast_scheduler.commands.policy.followed_policies import open_policies
from forecast_scheduler.settings.document import Settings
from kube.client.cluster_access import ClusterAccess
from kube.decoding.decoding import decode_pod
from testing.processes.scorer_process import ROOT
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually

POD = decode_pod({"metadata": {"name": "some", "namespace": "default"}})
GOOD = "default: a\npolicies: {a: {scores: {weights: {balance: 1}}}}"
BROKEN = "default: b\npolicies: {a: {}}"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def rights() -> tuple[str, list[Manifest]]:
    """The ConfigMap that docs/use/policies.md has the extender follow, and the rights it gives for that."""
    text = (ROOT / "docs/use/policies.md").read_text()
    (name,) = set(re.findall(r"--policies configmap:[-\w]+/([-\w]+)", text))
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "kind: Role\n" in block)
    return name, list(yaml.safe_load_all(block))


def test_the_rights_that_are_documented_are_enough(plane: ControlPlane, writer: ClusterWriter) -> None:
    name, manifests = rights()
    metadata = {"name": name, "namespace": "default"}
    written = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policies.yaml": GOOD}}
    writer.create(written)
    settings = Settings.model_validate({"policies": {"config_map": f"default/{name}"}})
    nobody = ClusterAccess(plane.write_kubeconfig("nobody", plane.powerless_token))
    with Api(plane) as api, open_policies(settings, nobody) as live:
        assert live is not None
        provider = live.provider
        refusal = provider.status.refusal
        assert provider.choose(POD).policy.name == "settings" and refusal is not None and "403" in refusal.message
        for manifest in manifests:
            if "subjects" in manifest:
                manifest["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}]
            scope = "" if manifest["kind"].startswith("Cluster") else "namespaces/default/"
            if scope:
                manifest["metadata"]["namespace"] = "default"
            api.request("POST", f"/apis/{manifest['apiVersion']}/{scope}{manifest['kind'].lower()}s", manifest)
        assert eventually(lambda: provider.choose(POD).policy.name == "a")
        assert provider.status.refusal is None
        writer.patch(written, {"data": {"policies.yaml": BROKEN}})

        def told() -> set[str]:
            items = api.request("GET", EVENTS)["items"]
            return {one["reason"] for one in items if one["regarding"]["name"] == name}

        assert eventually(lambda: "PolicyRefused" in told())
