"""Commands without `--prometheus` find the store of a real cluster through its API server, and no other one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
from forecast_scheduler.discovery.cluster_store import NoStoreFound, find_store
from kube.client.cluster_access import ClusterAccess
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.exporter import Exporter
from testing.servers.prometheus import PrometheusServer
from testing.servers.proxied_service import proxied_service
from testing.waiting import eventually
from trainer.prometheus.prometheus_settings import PrometheusOptions

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PROMETHEUS = {"app.kubernetes.io/name": "prometheus", "app.kubernetes.io/component": "server"}
LISTS: Sequence[dict[str, Any]] = ({"apiGroups": [""], "resources": ["services", "nodes"], "verbs": ["list"]},)
PROXY: dict[str, Any] = {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]}
NAMES = ("n1", "n2", "n3")


def node_info() -> str:
    return "".join(f'kube_node_info{{node="{name}"}} 1\n' for name in NAMES)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Three nodes; a Prometheus that knows them, and one of the shop's own, which is asked before it."""
    with ExitStack() as stack:
        running = stack.enter_context(control_plane())
        writer = stack.enter_context(ClusterWriter(running))
        for name in ("infra", "shop-metrics"):
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        writer.create_many(node(name) for name in NAMES)
        for place, page in (("infra/prometheus", node_info), ("shop-metrics/prometheus", lambda: "cart_orders 7\n")):
            exporter = stack.enter_context(Exporter(page))
            scrape = {"job_name": "all", "honor_labels": True, "scrape_interval": "1s"}
            scrape |= {"static_configs": [{"targets": [exporter.address]}]}
            blocks = tmp_path_factory.mktemp("blocks")
            server = stack.enter_context(PrometheusServer(blocks, scrapes=[scrape]))
            stack.enter_context(proxied_service(writer, place, 9090, server.port, PROMETHEUS, node="n1"))
        assert eventually(lambda: _finds(running.kubeconfig))
        yield running


def _finds(kubeconfig: Path) -> bool:
    try:
        find_store(PrometheusOptions(), ClusterAccess(kubeconfig))
    except NoStoreFound:
        return False
    return True


def account(plane: ControlPlane, name: str, rules: Sequence[dict[str, Any]]) -> Path:
    """The kubeconfig of a new service account with these rights in the whole cluster."""
    with Api(plane) as api:
        api.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        api.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subjects = [{"kind": "ServiceAccount", "namespace": "default", "name": name}]
        binding = {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}
        api.request("POST", f"{RBAC}/clusterrolebindings", binding)
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        token = api.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    return plane.write_kubeconfig(name, token)


def test_the_store_that_knows_the_nodes_is_taken(plane: ControlPlane, capfd: pytest.CaptureFixture[str]) -> None:
    kubeconfig = account(plane, "finder", [*LISTS, PROXY])
    assert run(["doctor", "--kubeconfig", str(kubeconfig)]) == 2  # it has nodes, and no pods
    said = capfd.readouterr().err
    assert "shop-metrics/prometheus:9090 is not the metrics store of this cluster: it knows 0 of 3 nodes" in said
    assert "metrics store: infra/prometheus:9090 (Prometheus), through the API server: it knows 3 of 3 nodes" in said
    assert "has no kube_pod_info within the last day" in " ".join(said.split())


def test_usage_is_read_through_the_proxy(plane: ControlPlane) -> None:
    store = find_store(PrometheusOptions(), ClusterAccess(plane.kubeconfig))
    connection = store.connect(PrometheusOptions())
    assert connection.instant("nodes", "count(kube_node_info)").values.tolist() == [3.0]
    connection.close()
    # Credentials are for the store that the settings name, and another Service must not get them.
    headers = {"X-Scope-OrgID": "a", "X-Key": "secret"}
    options = PrometheusOptions(headers=headers, username="u", password_file=Path("f"))
    assert store.connect(options).options.headers == {"X-Scope-OrgID": "a"}
    assert store.connect(options).options.username == ""


def test_a_command_that_works_without_a_store_finds_it_too(
    plane: ControlPlane, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["nodes", "--kubeconfig", str(plane.kubeconfig), "--models", str(tmp_path)]) == 0
    assert "metrics store: infra/prometheus:9090" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "rules", "said"),
    [
        ("stranger", (), "the API server forbids to list services: grant list on them"),
        ("reader", LISTS, "the API server forbids to ask it: grant get on services/proxy"),
    ],
)
def test_missing_rights_are_named(
    plane: ControlPlane, name: str, rules: Sequence[dict[str, Any]], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "--kubeconfig", str(account(plane, name, rules))]) == 2
    printed = " ".join(capfd.readouterr().err.split())
    assert said in printed and "pass --prometheus URL" in printed


def test_a_named_store_is_never_given_up_for_another(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORECAST_SCHEDULER_PROMETHEUS__PATIENCE", "0s")
    named = ["--prometheus", "http://127.0.0.1:9", "--kubeconfig", str(plane.kubeconfig)]
    assert run(["doctor", *named]) == 2
    assert "metrics store:" not in capfd.readouterr().err
