"""ElasticQuotas on a real API server: the definition as we ship it, tenants and their quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api, Refused
from testing.servers.cluster_objects import Manifest
from testing.waiting import eventually

_DEFINITION: Final = "crds/elasticquotas/elasticquotas.yaml"


def install_elastic_quotas(api: Api) -> None:
    """On return the API server serves them."""
    for path, manifest in shipped(_DEFINITION):
        api.request("POST", path, manifest)

    def is_served() -> bool:
        try:
            api.request("GET", _path("default"))
        except Refused:
            return False
        return True

    assert eventually(is_served)


def elastic_quota(
    tenant: str, least: Mapping[str, str], most: Mapping[str, str] | None = None, *, parent: str = ""
) -> Manifest:
    """Of a namespace, with its name. least, most: spec.min and spec.max."""
    labels = {"quota.scheduling.koordinator.sh/parent": parent} if parent else {}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": tenant, "namespace": tenant, "labels": labels},
        "spec": {"min": dict(least)} | ({} if most is None else {"max": dict(most)}),
    }


def create_quota(api: Api, quota: Manifest) -> None:
    api.request("POST", _path(quota["metadata"]["namespace"]), quota)


def delete_quotas(api: Api, *tenants: str) -> None:
    """Of these, with their names; those that are there."""
    for tenant in tenants:
        for one in api.request("GET", _path(tenant))["items"]:
            api.request("DELETE", f"{_path(tenant)}/{one['metadata']['name']}")


def _path(namespace: str) -> str:
    return f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/elasticquotas"
