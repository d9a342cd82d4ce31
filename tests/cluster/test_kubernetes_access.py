"""Who a real API server lets in to our services: tokens of service accounts, rights by RBAC, and what happens where it
is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from forecast.errors import InputError
from kube.client.kubernetes_client import api_client
from scorer.service.app import create_app
from serving.kubernetes_access import KubernetesAccess
from serving.kubernetes_reviews import Ask, api_server_ask, check_delegation
from testing.processes.scorer_process import ROOT
from testing.processes.webhook_process import Api, Refused, plain_pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def viewer_role() -> dict[str, Any]:
    """As deploy/ has it."""
    roles = yaml.safe_load_all((ROOT / "deploy" / "base" / "common" / "readers.yaml").read_text())
    return next(one for one in roles if one["metadata"]["name"] == "forecast-scheduler-viewer")


def bound(account: str, role: str) -> dict[str, Any]:
    """A ClusterRoleBinding of a service account of the namespace default."""
    return {
        "metadata": {"name": f"{account}-{role.replace(':', '-')}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": account}],
    }


class Accounts:
    """Service accounts and their tokens."""

    def __init__(self, plane: ControlPlane, api: Api) -> None:
        self._plane, self._api = plane, api

    def add(self, name: str, *roles: str) -> str:
        """A new account with these ClusterRoles; returns a token of it."""
        self._api.request("POST", ACCOUNTS, {"metadata": {"name": name}})
        for role in roles:
            self._api.request("POST", f"{RBAC}/clusterrolebindings", bound(name, role))
        return self.token(name)

    def token(self, name: str, *audiences: str) -> str:
        """Meant for these audiences; none = for the API server."""
        spec = {"audiences": list(audiences)} if audiences else {}
        return str(self._api.request("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})["status"]["token"])

    def ask(self, name: str, *, url: str = "", seconds: float = 3.0) -> Ask:
        """Reviews asked for by this account."""
        kubeconfig: Path = self._plane.write_kubeconfig(name, self.token(name), url=url)
        return api_server_ask(api_client(kubeconfig), seconds)


@pytest.fixture(scope="module")
def accounts(plane: ControlPlane) -> Iterator[Accounts]:
    with Api(plane) as api:
        accounts = Accounts(plane, api)
        role = viewer_role()
        api.request("POST", f"{RBAC}/clusterroles", role)
        accounts.add("delegate", "system:auth-delegator")
        accounts.add("viewer", role["metadata"]["name"])
        accounts.add("stranger")
        # RBAC reads its rules by a watch of its own.
        assert eventually(lambda: _may_ask(accounts.ask("delegate")))
        yield accounts


def _may_ask(ask: Ask) -> bool:
    try:
        check_delegation(ask)
    except InputError:
        return False
    return True


@contextmanager
def asked(access: KubernetesAccess) -> Iterator[Callable[..., int]]:
    """ask(token, path, method) -> the status a service with these rights answers."""
    with served(create_app(FakeScorer(5), access=access)) as url, httpx.Client(base_url=url, timeout=20) as client:

        def ask(token: str | None, path: str = "/v1/nodes", method: str = "GET") -> int:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            return client.request(method, path, headers=headers, json={} if method == "POST" else None).status_code

        yield ask


def test_rbac_decides_who_may_ask_what(plane: ControlPlane, accounts: Accounts) -> None:
    viewer, stranger = accounts.token("viewer"), accounts.token("stranger")
    with asked(KubernetesAccess(accounts.ask("delegate"))) as ask:
        for path in ("/v1/nodes", "/v1/nodes/node-03/forecast", "/metrics", "/openapi.json"):
            assert [ask(token, path) for token in (viewer, stranger, "made-up", None)] == [200, 403, 401, 401], path
        assert ask(viewer, "/v1/charges", "POST") == 403
        assert ask(plane.token, "/v1/charges", "POST") == 422  # an administrator may; the body names no pod
        assert ask(plane.powerless_token) == 403
        assert ask(None, "/healthz") == 200


def test_a_token_must_be_meant_for_us_where_audiences_are_set(accounts: Accounts) -> None:
    ours, theirs = accounts.token("viewer", "forecast-scheduler"), accounts.token("viewer", "vault")
    the_api_servers = accounts.token("viewer")
    with asked(KubernetesAccess(accounts.ask("delegate"))) as ask:
        assert [ask(token) for token in (ours, theirs, the_api_servers)] == [401, 401, 200]
    with asked(KubernetesAccess(accounts.ask("delegate"), ["forecast-scheduler"])) as ask:
        assert [ask(token) for token in (ours, theirs, the_api_servers)] == [200, 401, 401]


def test_the_admission_policy_of_the_docs_refuses_the_annotation_it_names(plane: ControlPlane) -> None:
    page = (ROOT / "docs" / "operate" / "security.md").read_text()
    text = "apiVersion" + page.partition("```yaml\napiVersion")[2].partition("```")[0]
    group = "/apis/admissionregistration.k8s.io/v1"
    marked, plain = plain_pod("marked", "shop"), plain_pod("plain", "shop")
    marked["metadata"]["annotations"] = {"forecast-scheduler.io/virtual-request": '{"cpu": "1m"}'}
    with Api(plane) as api:
        policy, binding = yaml.safe_load_all(text)
        api.request("POST", f"{group}/validatingadmissionpolicies", policy)
        api.request("POST", f"{group}/validatingadmissionpolicybindings", binding)

        def refused() -> bool:
            try:
                api.create(marked, "?dryRun=All")
            except Refused as error:
                return "virtual-request is for operators" in error.message
            return False

        assert eventually(refused)
        api.create(plain, "?dryRun=All")
        assert api.warnings == []
