"""An API server with all policies that are shipped, for the tests of what they refuse to each account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from autoscaling.requests.pod_resources import RESIZED_LABEL
from kube.client.pod_writes import MERGE
from testing.servers.applying import Applier, NotApplied
from testing.servers.audit import Audit
from testing.servers.cluster_objects import ClusterWriter, pod
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import built_from
from testing.servers.shipped_rights import Account
from testing.waiting import eventually
from tests.deploy.rights import Installed

JSON: Final = "application/json"
_PARTS: Final = ("webhook", "advisor", "rebalancer", "autoscaler", "autoscaler-writes", "shards")


class Policed:
    """admin may everything, each part what is shipped."""

    def __init__(self, installed: Installed, writer: ClusterWriter) -> None:
        self.admin, self.writer, self.manifests = installed.applier, writer, installed.manifests
        self._installed, self._of, self._tenants = installed, dict[str, Applier](), dict[str, Applier]()

    def by(self, part: str) -> Applier:
        """Sends requests with the token of its account."""
        if part not in self._of:
            plane, token = self._installed.plane, self._installed.token(f"forecast-scheduler-{part}")
            self._of[part] = Applier(Account(plane.url, token, plane.ca_file), agent="forecast-scheduler")
        return self._of[part]

    def tenant(self, namespace: str) -> Applier:
        """Sends requests with the token of an account that has the rights of the ClusterRole edit in a namespace."""
        if namespace not in self._tenants:
            name = {"namespace": namespace, "name": "tenant"}
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name}
            self.admin.apply(account)
            self.admin.apply(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "RoleBinding",
                    "metadata": name,
                    # Of these a controller makes `edit`, which no process runs here.
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "ClusterRole",
                        "name": "system:aggregate-to-edit",
                    },
                    "subjects": [{"kind": "ServiceAccount", **name}],
                }
            )
            plane, token = self._installed.plane, self._installed.token("tenant", namespace)
            self._tenants[namespace] = Applier(Account(plane.url, token, plane.ca_file))
        return self._tenants[namespace]

    def write(self, part: str, path: str, body: Any, kind: str = MERGE, method: str = "PATCH") -> dict[str, Any]:
        """What the part writes; raises NotApplied."""
        return self.by(part).send(method, path, body, kind=kind)

    def refuses(self, part: str, path: str, body: Any, kind: str = MERGE, method: str = "PATCH") -> bool:
        """Whether a policy refuses it to the part, a moment after it was made; another refusal is raised.

        Or it is a field that no account may change. Nothing is written in either case.
        """

        def is_refused() -> bool:
            try:
                self.write(part, f"{path}?dryRun=All", body, kind, method)
            except NotApplied as error:
                by_whom = ("ValidatingAdmissionPolicy 'forecast-scheduler-", "field is immutable")
                if not any(one in error.message for one in by_whom):
                    raise
                return True
            return False

        return eventually(is_refused)

    def create(self, collection: str, manifest: Any) -> dict[str, Any]:
        """Return the object that the administrator created."""
        return self.admin.send("POST", collection, manifest, kind=JSON)


@pytest.fixture(scope="module")
def policed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Policed]:
    place = tmp_path_factory.mktemp("policies")
    components = [f"components/{name}" for name in _PARTS]
    manifests = built_from(place / "all", resources=["overlays/gpu"], components=components)
    with control_plane() as plane, Applier(plane) as admin, ClusterWriter(plane) as writer:
        yield Policed(Installed(plane, admin, Audit(place, []), manifests), writer)
        for one in manifests:
            if one["kind"] == "ValidatingAdmissionPolicyBinding":
                admin.send("DELETE", admin.path(one))
        # A policy counts a moment longer than it is there, for whoever has the control plane next, too.
        assert eventually(lambda: _is_free(admin))


def _is_free(admin: Applier) -> bool:
    try:
        admin.send(
            "POST", "/api/v1/namespaces/default/pods?dryRun=All", pod("p", labels={RESIZED_LABEL: "x"}), kind=JSON
        )
    except NotApplied as error:
        return "ValidatingAdmissionPolicy" not in error.message
    return True
