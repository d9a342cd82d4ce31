"""Who gets a token: OpenShift's querier that of the user, a known store that of the settings, no other Service any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from base.errors import ForecastError, InputError
from forecast_scheduler.discovery.openshift import querier_inside, querier_outside
from forecast_scheduler.discovery.ranking import StoreCandidate, rank_services
from forecast_scheduler.discovery.reaching import Reaching
from forecast_scheduler.discovery.services import ServiceFacts, ServicePort
from kube.client.cluster_access import ClusterAccess
from testing.servers.bad_proxy import BadProxy, self_signed
from testing.servers.token_service import TokenService
from trainer.prometheus.http_answer import CredentialsRefused
from trainer.prometheus.prometheus_settings import PrometheusOptions

ROUTE = "/apis/route.openshift.io/v1/namespaces/openshift-monitoring/routes/thanos-querier"
ANSWER = {"status": "success", "data": {"resultType": "vector", "result": []}}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def querier(certificate: Path) -> Iterator[BadProxy]:
    """The store behind the Route: whoever has the token gets an empty answer."""
    with (
        TokenService(lambda path, form: (200, json.dumps(ANSWER))) as store,
        BadProxy(f"http://{store.host}", authorization="Bearer of-the-user", certificate=certificate) as gateway,
    ):
        yield gateway


def api(host: str, token: str) -> client.ApiClient:
    configuration = client.Configuration()
    configuration.host = f"http://{host}"
    if token:
        configuration.api_key["authorization"] = f"Bearer {token}"
    return client.ApiClient(configuration)


def candidate(place: str, **labels: str) -> StoreCandidate:
    namespace, name = place.split("/")
    facts = ServiceFacts(
        namespace, name, {f"app.kubernetes.io/{k}": v for k, v in labels.items()}, (ServicePort(9090),)
    )
    return rank_services([facts])[0]


def test_the_route_gets_the_token_of_the_user(querier: BadProxy, certificate: Path) -> None:
    route = json.dumps({"spec": {"host": querier.url.removeprefix("https://")}})
    with TokenService(lambda path, form: (200, route) if path == ROUTE else (404, "")) as server:
        store = querier_outside(api(server.host, "of-the-user"))
        stranger = querier_outside(api(server.host, "of-another"))
        assert store is not None and stranger is not None
        # Whatever the settings say, the certificate is checked.
        unknown = PrometheusOptions(insecure=True, patience=0)
        with pytest.raises(InputError, match="no secure connection"):
            store.connect(unknown).instant("nodes", "kube_node_info")
        known = PrometheusOptions(ca_file=certificate, patience=0)
        assert store.connect(known).instant("nodes", "kube_node_info").labels == ()
        with pytest.raises(CredentialsRefused):
            stranger.connect(known).instant("nodes", "kube_node_info")
        with pytest.raises(ForecastError, match="oc login"):
            querier_outside(api(server.host, ""))


def test_other_clusters_have_no_route() -> None:
    with TokenService(lambda path, form: (404, "")) as server:
        assert querier_outside(api(server.host, "t")) is None
    with (
        TokenService(lambda path, form: (403, "")) as server,
        pytest.raises(ForecastError, match="grant get on routes"),
    ):
        querier_outside(api(server.host, "t"))


def test_a_pod_shows_its_token_to_what_the_authority_of_services_proves(tmp_path: Path) -> None:
    address = "https://thanos-querier.openshift-monitoring.svc:9091"
    (tmp_path / "token").write_text("t")
    assert querier_inside(address, tmp_path) is None  # no OpenShift: any tenant may call a namespace so
    (tmp_path / "service-ca.crt").write_text("pem")
    store = querier_inside(address, tmp_path)
    assert store is not None and not store.is_named
    assert store.own == {
        "bearer_token_file": tmp_path / "token",
        "ca_file": tmp_path / "service-ca.crt",
        "insecure": False,
    }


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(config))
    return path


def test_credentials_of_the_settings_go_to_a_known_store_inside_alone(kubeconfig: Path, tmp_path: Path) -> None:
    options = PrometheusOptions(bearer_token_file=tmp_path / "token")
    reaching = Reaching(ClusterAccess(kubeconfig), options)
    known = candidate("monitoring/prometheus-k8s", name="prometheus", component="prometheus")
    assert not reaching.store(known, "").is_named
    with pytest.raises(ForecastError, match="do not pass the API server"):
        reaching.with_credentials(known, "")
    reaching.is_inside = True
    shown = reaching.with_credentials(known, "")
    assert shown.is_named and shown.connect(options).options.bearer_token_file == tmp_path / "token"
    for other in (
        candidate("shop-monitoring/prometheus-k8s", name="prometheus", component="prometheus"),
        candidate("monitoring/cart"),
    ):
        with pytest.raises(ForecastError, match="found by its name alone"):
            reaching.with_credentials(other, "")
    without = Reaching(ClusterAccess(kubeconfig), PrometheusOptions())
    without.is_inside = True
    with pytest.raises(ForecastError, match="it asks for credentials: set"):
        without.with_credentials(known, "")
