"""What of manifests is needed to run parts outside the cluster as they are shipped: accounts, their rights, and the
policies that confine these, enforced by a real API server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from testing.servers.applying import Applier
from testing.servers.control_plane.control_plane import ControlPlane

NAMESPACE: Final = "forecast-scheduler"

_KINDS: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


@dataclass(frozen=True)
class Account:
    """Plane as Applier takes it, with the token of an account."""

    url: str
    token: str
    ca_file: Path


class ShippedRights:
    """Applied when it is made."""

    def __init__(self, plane: ControlPlane, applier: Applier, manifests: list[dict[str, Any]]) -> None:
        self.plane, self.applier, self.manifests = plane, applier, manifests
        applier.apply_all(one for one in manifests if one["kind"] in _KINDS)

    def kubeconfig(self, part: str) -> Path:
        """With a token of its account."""
        return self.plane.write_kubeconfig(part, self.token(f"forecast-scheduler-{part}"))

    def token(self, account: str, namespace: str = NAMESPACE) -> str:
        """Of a service account, in our namespace if not said otherwise."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        return str(self.applier.send("POST", path, asked, kind="application/json")["status"]["token"])
