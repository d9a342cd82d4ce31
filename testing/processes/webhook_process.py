"""The command `forecast-scheduler webhook` in a process of its own, and an API server that asks it about new pods."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import urllib3
import yaml

from testing.authority import Authority
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.shipped_webhook import shipped_webhook
from testing.waiting import eventually

WEBHOOK_NAME = "templates.forecast-scheduler.io"
API_VERSION = "forecast-scheduler.io/v1alpha1"

_GROUP = "/apis/forecast-scheduler.io/v1alpha1"
_COLLECTIONS = {
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Namespace": "/api/v1/namespaces",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "NodeSchedulerConfig": f"{_GROUP}/nodeschedulerconfigs",
    "PodSchedulerConfig": f"{_GROUP}/podschedulerconfigs",
    "SchedulerConfigBinding": f"{_GROUP}/schedulerconfigbindings",
}


class Refused(Exception):
    """The API server does not do it; status and message are its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status, self.message = status, message


class Api:
    """An API server as kubectl uses it. warnings: those of all answers so far."""

    def __init__(self, plane: ControlPlane) -> None:
        self._url, self._headers = plane.url, {"Authorization": f"Bearer {plane.token}"}
        self._pool = urllib3.PoolManager(ca_certs=str(plane.ca_file), maxsize=16, retries=False, timeout=30)
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._pool.clear()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Raises Refused."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = self._pool.request(
            method,
            self._url + path,
            body=None if body is None else json.dumps(body),
            headers=self._headers | {"Content-Type": kind},
        )
        self.warnings += answer.headers.getlist("Warning")
        # Of a group that has just come or gone it says 404 in plain text.
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        content = json.loads(answer.data) if is_json else {"message": answer.data.decode(errors="replace")}
        if answer.status >= 300:
            raise Refused(answer.status, content.get("message", ""))
        return content

    def create(self, manifest: Mapping[str, Any], query: str = "") -> Any:
        """POST."""
        return self.request("POST", _collection(manifest) + query, manifest)

    def read(self, manifest: Mapping[str, Any]) -> Any:
        """GET the object of that kind and name."""
        return self.request("GET", _path(manifest))

    def patch(self, manifest: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
        """Merge."""
        return self.request("PATCH", _path(manifest), change)

    def delete(self, manifest: Mapping[str, Any]) -> None:
        """At once; what is gone already is fine."""
        try:
            self.request("DELETE", _path(manifest), {"gracePeriodSeconds": 0})
        except Refused as error:
            if error.status != 404:
                raise

    def install_crds(self) -> None:
        """Ours, and wait until they are served."""
        for manifest in manifests(ROOT / "deploy" / "crds"):
            self.create(manifest)
        assert eventually(self.crds_are_served)

    def crds_are_served(self) -> bool:
        """Whether objects of all three can be listed."""
        try:
            for kind in ("NodeSchedulerConfig", "PodSchedulerConfig", "SchedulerConfigBinding"):
                self.request("GET", _COLLECTIONS[kind])
        except Refused:
            return False
        return True


def manifests(*places: Path) -> list[dict[str, Any]]:
    """The objects of YAML files, or of those right in a directory, kustomizations left out."""
    files = [file for place in places for file in (sorted(place.glob("*.yaml")) if place.is_dir() else [place])]
    found = [one for file in files for one in yaml.safe_load_all(file.read_text()) if one is not None]
    return [one for one in found if one.get("kind") != "Kustomization"]


class WebhookProcess(ScorerProcess):
    """Context manager around one process, with a certificate of its own for 127.0.0.1. ca: who signed it."""

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path,
        *arguments: str | Path,
        settings: Mapping[str, Any] | None = None,
        code: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        forked: bool = False,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        authority = Authority(directory, "authority")
        self.ca = authority.ca
        certificate, key = authority.issue("webhook")
        usual = ("--kubeconfig", kubeconfig, "--tls-cert", certificate, "--tls-key", key)
        super().__init__(
            directory, *usual, *arguments, settings=settings or {}, command="webhook", code=code,
            environment=environment, forked=forked,
        )  # fmt: skip
        self.http.close()
        self.http = httpx.Client(timeout=20, verify=ssl.create_default_context(cafile=str(self.ca)))


def configuration(webhook: WebhookProcess, called: str = "forecast-scheduler", /, **changed: Any) -> dict[str, Any]:
    """The shipped MutatingWebhookConfiguration, for a webhook on this machine; `changed` replaces fields of it."""
    # A busy machine must not look like a slow webhook.
    made = shipped_webhook(webhook.url, webhook.ca, **({"timeoutSeconds": 10} | changed))
    made["metadata"]["name"] = called
    return made


def node_config(name: str, *, default: str = "general") -> dict[str, Any]:
    """A template that prefers a pool."""
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeSchedulerConfig",
        "metadata": {"name": name},
        "spec": {
            "parameters": [{"name": "pool", "string": {"default": default}}],
            "preferred": [
                {"weight": 50, "matchExpressions": [{"key": "pool", "operator": "In", "valuesFrom": ["pool"]}]}
            ],
        },
    }


def binding(name: str, *, template: str, pool: str = "", **pods: Any) -> dict[str, Any]:
    """Applies such a template to pods; they are those with the label app=NAME where nothing is said."""
    spec: dict[str, Any] = {
        "template": {"kind": "NodeSchedulerConfig", "name": template},
        "pods": pods or {"selector": {"matchLabels": {"app": name}}},
    }
    if pool:
        spec["arguments"] = [{"name": "pool", "string": pool}]
    return {
        "apiVersion": API_VERSION, "kind": "SchedulerConfigBinding", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


def plain_pod(name: str, app: str, *, namespace: str = "default", **metadata: Any) -> dict[str, Any]:
    """A pod that says nothing about nodes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}} | metadata,
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }


def pools_of(pod: Mapping[str, Any]) -> list[str]:
    """What such templates made a pod prefer; [] = it was not shaped."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return [
        value
        for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
        for expression in term["preference"]["matchExpressions"]
        for value in expression["values"]
    ]


def metric(webhook: WebhookProcess, series: str) -> float:
    """Value of one series; 0 where it is missing."""
    for line in webhook.http.get("/metrics").raise_for_status().text.splitlines():
        name, _, value = line.rpartition(" ")
        if name == series:
            return float(value)
    return 0.0


def _collection(manifest: Mapping[str, Any]) -> str:
    return _COLLECTIONS[manifest["kind"]].format(namespace=manifest["metadata"].get("namespace", "default"))


def _path(manifest: Mapping[str, Any]) -> str:
    return f"{_collection(manifest)}/{manifest['metadata']['name']}"
