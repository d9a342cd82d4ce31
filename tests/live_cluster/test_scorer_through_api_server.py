"""`nodes --scorer kubernetes`: with a kubeconfig alone, by the shipped rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from forecast.hot_share import HOT_SHARE
from forecast_scheduler.cli import run
from forecast_scheduler.commands.api_server_proxy import _BIND_THE_ROLE
from kube.client.kubernetes_client import api_client
from scorer.service.app import create_app
from serving.kubernetes_access import KubernetesAccess
from serving.token_reviews import api_server_ask
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually
from tests.live_cluster.proxy_hop import passing_on
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    component = "components/reports-through-api-server/rbac.yaml"
    common = ("base/common/namespace.yaml", "base/common/readers.yaml", component)
    with control_plane() as running, Api(running) as api:
        for path, manifest in shipped(*common, "base/scorer/rbac.yaml", "base/scorer/scorer.yaml"):
            if manifest["kind"] not in ("Deployment", "PodDisruptionBudget"):
                api.request("POST", path, manifest)
        for name in ("on-call", "stranger"):
            api.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        subjects = [{"kind": "ServiceAccount", "namespace": "default", "name": "on-call"}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "forecast-scheduler-reports"}
        binding = {"metadata": {"name": "on-call"}, "roleRef": role, "subjects": subjects}
        api.request("POST", f"{RBAC}/namespaces/forecast-scheduler/rolebindings", binding)
        yield running


def kubeconfig(plane: ControlPlane, account: str, url: str) -> Path:
    namespace, name = account.split("/")
    with Api(plane) as api:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token = api.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    return plane.write_kubeconfig(name, token, url=url)


def test_a_kubeconfig_with_the_shipped_role_is_enough(plane: ControlPlane, capfd: pytest.CaptureFixture[str]) -> None:
    of_scorer = kubeconfig(plane, "forecast-scheduler/forecast-scheduler-scorer", plane.url)
    access = KubernetesAccess(api_server_ask(api_client(of_scorer), 3.0))
    with (
        served(create_app(FakeScorer(5), access=access, hot=HOT_SHARE)) as scorer,
        passing_on(plane, {"forecast-scheduler-scorer": scorer}) as url,
    ):
        on_call, stranger = (str(kubeconfig(plane, f"default/{name}", url)) for name in ("on-call", "stranger"))
        asks = ["nodes", "--scorer", "kubernetes", "--top", "2", "-o", "json", "--kubeconfig"]
        assert eventually(lambda: run([*asks, on_call]) == 0), capfd.readouterr().err
        printed = capfd.readouterr().out
        assert len(json.loads(printed[printed.rindex('{\n  "nodes"') :])["nodes"]) == 2
        assert run(["node", "node-03", "--scorer", "kubernetes", "--kubeconfig", on_call]) == 0
        assert "node-03, the next 24 h: expected peak" in capfd.readouterr().out
        assert run([*asks, stranger]) == 2
        said = " ".join(capfd.readouterr().err.split())
        assert "the API server, asked for a token of the account forecast-scheduler-viewer, answered 403: " in said
        assert 'cannot create resource "serviceaccounts/token"' in said and said.endswith(_BIND_THE_ROLE)
        # The API server itself has no endpoint to pass it on to.
        assert run([*asks, str(kubeconfig(plane, "default/on-call", plane.url))]) == 2
        said = " ".join(capfd.readouterr().err.split())
        assert "the scorer behind https://" in said and "answered 503: no endpoints available" in said
        # The header alone opens nothing.
        made_up = {"Forecast-Scheduler-Authorization": "Bearer made-up"}
        assert urllib3.request("GET", f"{scorer}/v1/nodes", headers=made_up, retries=False).status == 401


def test_nothing_else_is_said_with_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["nodes", "--scorer", "kubernetes", "--models", "m"]) == 2
    assert "pass --kubeconfig and --context at most" in capfd.readouterr().err
