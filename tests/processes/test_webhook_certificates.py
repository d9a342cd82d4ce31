"""Managed certificates with a real API server, which refuses every pod whose webhook it does not trust.

Two replicas, each asked about every pod over a connection of its own, with failurePolicy Fail and the rights of
deploy/base/webhook/rbac-certificates.yaml. Their clock is moved, the API server's cannot be: it starts in the past, so
that all certificates are good today.
"""

from __future__ import annotations

import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509

from admission.certificates.authority import read_certificates
from admission.certificates.certificate_secret import SecretContent, held_from
from admission.certificates.managed_certificates import open_certificates
from admission.certificates.metrics import CertificateCollector
from admission.certificates.options import CertificateOptions, Named
from forecast.errors import InputError
from kube.client.kubernetes_client import api_client
from testing.authority import Authority
from testing.processes.scorer_process import ROOT, ScorerProcess, eventually
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api, Refused, manifests, plain_pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import built_from
from tests.processes.certificate_replicas import (
    CONFIGURATIONS,
    DAY_SECONDS,
    NAMESPACE,
    OPTIONS,
    Clock,
    configure,
    replicas,
)

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/forecast-scheduler-webhook-certificates"
CONFIGURATION = f"{CONFIGURATIONS}/forecast-scheduler"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    with Api(plane) as api:
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for manifest in manifests(ROOT / "deploy" / "base" / "webhook" / "rbac-certificates.yaml"):
            if "subjects" in manifest:
                manifest["subjects"] = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "nobody"}]
            namespace = manifest["metadata"].get("namespace")
            scope = f"/namespaces/{namespace}" if namespace else ""
            api.request("POST", f"{_RBAC}{scope}/{manifest['kind'].lower()}s", manifest)
        for path, manifest in shipped("base/webhook/policy-certificates.yaml"):
            for condition in manifest["spec"].get("matchConditions", ()):
                condition["expression"] = "request.userInfo.username == 'nobody'"
            api.request("POST", path, manifest)
        assert api.warnings == []
        api.install_crds()
        yield api


@pytest.fixture
def kubeconfig(plane: ControlPlane, api: Api) -> Iterator[Path]:
    """Of a user who may do what the webhook's service account may. Nothing is left of earlier tests."""
    yield plane.write_kubeconfig("nobody", plane.powerless_token)
    for path in (CONFIGURATION, SECRET):
        try:
            api.request("DELETE", path)
        except Refused as error:
            assert error.status == 404  # noqa: PT017 - cleaning up


def bundles(api: Api) -> list[bytes]:
    return [b64decode(one["clientConfig"].get("caBundle", "")) for one in api.request("GET", CONFIGURATION)["webhooks"]]


def held(api: Api) -> SecretContent:
    return held_from({key: b64decode(value) for key, value in api.request("GET", SECRET)["data"].items()})


class PodsAllTheTime:
    """Context manager: creates pods, one after the other. refused: what the API server said."""

    def __init__(self, api: Api, prefix: str) -> None:
        self._api, self._prefix, self._stop = api, prefix, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.refused: list[str] = []
        self.created: list[dict[str, Any]] = []

    def __enter__(self) -> PodsAllTheTime:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def more(self, n: int = 20) -> None:
        """Wait until so many more have been created."""
        goal = len(self.created) + n
        assert eventually(lambda: len(self.created) >= goal or bool(self.refused), 60)
        assert self.refused == []

    def _run(self) -> None:
        while not self._stop.is_set():
            pod = plain_pod(f"{self._prefix}-{len(self.created)}", "cart")
            try:
                self.created.append(self._api.create(pod))
            except Refused as error:
                self.refused.append(str(error))
                return


def is_created(api: Api, name: str) -> bool:
    """Whether the API server can ask all webhooks about a pod of that name."""
    try:
        api.create(plain_pod(name, "cart"), "?dryRun=All")
    except Refused:
        return False
    return True


def test_certificates_are_rotated_while_pods_are_created(api: Api, kubeconfig: Path) -> None:
    clock = Clock(days=-255)
    with ExitStack() as stack:
        with replicas(kubeconfig, clock, n=1):
            first = held(api).authority.certificate  # its two thirds are over 12 days before today
        clock.days = -80
        running = stack.enter_context(replicas(kubeconfig, clock))
        configure(api, running)
        assert eventually(lambda: is_created(api, "probe"), 30)
        assert bundles(api)[1] == b"theirs"
        pods = stack.enter_context(PodsAllTheTime(api, "rotated"))
        pods.more()

        def all_show(wanted: Callable[[], x509.Certificate | None]) -> None:
            """Wait until every replica shows the certificate, with pods before and after."""
            assert eventually(lambda: all(one.shows() == wanted() for one in running), 60)
            pods.more()

        earlier = serving(api)
        clock.days = -13  # two thirds of a certificate's life are over
        assert eventually(lambda: serving(api) != earlier, 30)
        all_show(lambda: serving(api))
        renewed = serving(api)
        assert held(api).upcoming is None

        clock.days = -11  # two thirds of the authority's are
        assert eventually(lambda: held(api).upcoming is not None, 30)
        assert held(api).authority.certificate == first
        assert eventually(lambda: held(api).trusted_at is not None, 30)
        upcoming = held(api).upcoming
        assert upcoming is not None
        pods.more()
        clock.days = -9.9  # and so is the day ahead
        assert eventually(lambda: held(api).authority.certificate == upcoming.certificate, 30)
        all_show(lambda: serving(api))
        assert serving(api) != renewed
        assert held(api).previous == (first,)
        ours = [read_certificates(bundle) for number, bundle in enumerate(bundles(api)) if number != 1]
        assert all(set(bundle) == {first, upcoming.certificate} for bundle in ours)

        # Lost altogether: a new authority, and the old ones stay trusted.
        api.request("DELETE", SECRET)
        assert eventually(lambda: has_another_authority(api, upcoming.certificate), 30)
        all_show(lambda: serving(api))

        # Broken by hand: the same.
        lost = held(api).authority.certificate
        api.request("PATCH", SECRET, {"data": {"ca.key": b64encode(b"broken").decode()}})
        assert eventually(lambda: has_another_authority(api, lost), 30)
        all_show(lambda: serving(api))

        assert bundles(api)[1] == b"theirs"
        assert pods.refused == []
    labels = [pod["metadata"]["labels"] for pod in pods.created]
    assert all(one["replica-0"] == one["replica-1"] == "seen" for one in labels)
    assert len(labels) >= 160


def serving(api: Api) -> x509.Certificate | None:
    """The one in the Secret."""
    try:
        found = held(api).serving
    except (Refused, ValueError):
        return None
    return None if found is None else found.certificate


def has_another_authority(api: Api, than: x509.Certificate) -> bool:
    try:
        return held(api).authority.certificate != than
    except (Refused, ValueError):
        return False


def test_a_bundle_that_somebody_empties_is_mended(api: Api, kubeconfig: Path) -> None:
    with replicas(kubeconfig, Clock()) as running:
        configure(api, running)
        # The API server may go by the configuration of the test before for a moment.
        assert eventually(lambda: all(bundles(api)) and is_created(api, "probe"), 30)
        right = bundles(api)
        document = api.request("GET", CONFIGURATION)
        del document["webhooks"][0]["clientConfig"]["caBundle"]
        document["webhooks"].reverse()
        api.request("PUT", CONFIGURATION, document)
        assert eventually(lambda: bundles(api) == right[::-1], 30)
        assert eventually(lambda: is_created(api, "probe"), 30)


def test_what_is_stored_is_for_the_owner_and_says_whose_it_is(api: Api, kubeconfig: Path) -> None:
    with replicas(kubeconfig, Clock(), n=1):
        stored = api.request("GET", SECRET)
    assert stored["type"] == "kubernetes.io/tls"
    assert stored["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "forecast-scheduler"
    assert set(stored["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}


def test_certificates_outlive_the_api_server(plane: ControlPlane, api: Api, kubeconfig: Path) -> None:
    clock = Clock(days=-80)
    with replicas(kubeconfig, clock) as running:
        before = running[0].shows()
        plane.api_server.kill()
        clock.days = 0  # a renewal is due
        failed = [one.keeper.figures.failed for one in running]
        assert eventually(
            lambda: all(one.keeper.figures.failed > n for one, n in zip(running, failed, strict=True)), 30
        )
        assert [one.shows() for one in running] == [before, before]
        plane.api_server.start()
        assert eventually(lambda: running[0].shows() == running[1].shows() == serving(api) != before, 60)


def test_open_certificates_has_a_certificate_at_once_and_looks_after_it(api: Api, kubeconfig: Path) -> None:
    client = api_client(kubeconfig)
    with open_certificates(OPTIONS.replace(every=0.1), client) as managed:
        assert managed.files.key is None
        [shown] = read_certificates(managed.files.certificate.read_bytes())
        assert shown == serving(api)
        assert isinstance(managed.collector, CertificateCollector)
        directory = managed.files.certificate.parent
        api.request("DELETE", SECRET)
        assert eventually(lambda: serving(api) not in (None, shown), 30)
    assert not directory.exists()
    client.rest_client.pool_manager.clear()


def test_the_command_manages_its_certificate(plane: ControlPlane, api: Api, kubeconfig: Path, tmp_path: Path) -> None:
    """It starts before anybody calls it; the configuration comes later and names nobody to trust."""
    settings = {"webhook": {"certificates": {"managed": True, "names": ["127.0.0.1"]}}}
    arguments = ("--kubeconfig", plane.kubeconfig)
    with ScorerProcess(tmp_path, *arguments, settings=settings, ready=False, command="webhook") as process:
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
        called = {"name": "one.example.com", "clientConfig": {"url": f"{process.url}/mutate"}, "rules": rules}
        webhook = called | {"admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail"}
        api.request("POST", CONFIGURATIONS, {"metadata": {"name": "forecast-scheduler"}, "webhooks": [webhook]})
        assert eventually(lambda: is_created(api, "probe"), 60), process.log
        trusting = ssl.create_default_context(cadata=bundles(api)[0].decode())
        metrics = httpx.get(f"{process.url}/metrics", verify=trusting).raise_for_status().text
        ends = held(api).authority.certificate.not_valid_after_utc.timestamp()
        [line] = [
            line for line in metrics.splitlines() if line.startswith("forecast_webhook_certificate_expiry_timestamp")
        ]
        assert 0 < float(line.split()[1]) - time.time() < 31 * DAY_SECONDS < ends - time.time()
        assert "forecast_webhook_ca_bundle_writes_total 1.0" in metrics
        assert process.terminate() == 0


def test_clients_show_certificates_to_a_webhook_that_manages_its_own(
    plane: ControlPlane, api: Api, kubeconfig: Path, tmp_path: Path
) -> None:
    clients = Authority(tmp_path, "clients")
    certificate, key = clients.issue("api-server")
    settings = {"webhook": {"certificates": {"managed": True, "names": ["127.0.0.1"]}}}
    arguments = ("--kubeconfig", plane.kubeconfig, "--client-ca", clients.ca)
    with ScorerProcess(tmp_path, *arguments, settings=settings, ready=False, command="webhook") as process:
        authority = b64decode(api.request("GET", SECRET)["data"]["ca.crt"]).decode()
        trusting = ssl.create_default_context(cadata=authority)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{process.url}/healthz", verify=trusting, timeout=20)
        trusting.load_cert_chain(certificate, key)
        assert httpx.get(f"{process.url}/healthz", verify=trusting, timeout=20).status_code == 200
        assert process.terminate() == 0


def test_missing_rights_and_wrong_names_are_said_at_the_start(plane: ControlPlane, api: Api, kubeconfig: Path) -> None:
    client = api_client(kubeconfig)
    other = OPTIONS.replace(secret=Named(NAMESPACE, "other"))
    with pytest.raises(InputError, match=r"403 .*secrets.*rbac-certificates\.yaml"), open_certificates(other, client):
        pass
    other = OPTIONS.replace(webhook_configuration="other")
    with pytest.raises(InputError, match=r"403 .*mutatingwebhookconfigurations"), open_certificates(other, client):
        pass
    client.rest_client.pool_manager.clear()
    admin = api_client(plane.kubeconfig)
    nowhere = OPTIONS.replace(secret=Named("nowhere", "certificates"))
    with pytest.raises(InputError, match="there is no namespace nowhere"), open_certificates(nowhere, admin):
        pass
    theirs = {"metadata": {"name": "theirs"}, "type": "Opaque", "data": {"password": "eA=="}}
    api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", theirs)
    foreign = OPTIONS.replace(secret=Named(NAMESPACE, "theirs"))
    with pytest.raises(InputError, match="is left alone"), open_certificates(foreign, admin):
        pass
    admin.rest_client.pool_manager.clear()


BY_CERT_MANAGER = "components/webhook-certificate-by-cert-manager"


def test_with_cert_manager_the_webhook_shows_its_certificate_and_may_do_nothing_about_one(tmp_path: Path) -> None:
    shipped = built_from(tmp_path / "webhook", resources=["base/webhook"], components=[BY_CERT_MANAGER])
    by_kind = {one["kind"]: one for one in shipped if one["kind"] in ("Deployment", "MutatingWebhookConfiguration")}
    found = by_kind["Deployment"]["spec"]["template"]["spec"]
    [container] = found["containers"]
    values = {one["name"]: one.get("value") for one in container["env"]}
    assert values["FORECAST_SCHEDULER_WEBHOOK__CERTIFICATES__MANAGED"] == "false"
    assert "/tls/tls.crt" in container["args"]
    mounted = {one["name"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one.get("secret", {}).get("secretName") for one in found["volumes"]}
    assert {"tls", "tmp"} <= mounted == set(volumes)
    certificates = {one["spec"]["secretName"]: one for one in shipped if one["kind"] == "Certificate"}
    shown = certificates[volumes["tls"]]["metadata"]
    annotations = by_kind["MutatingWebhookConfiguration"]["metadata"]["annotations"]
    assert annotations == {"cert-manager.io/inject-ca-from": f"{shown['namespace']}/{shown['name']}"}
    assert not [one for one in shipped if one["metadata"]["name"].endswith("-webhook-certificates")]


def test_shipped_names_are_those_of_the_settings() -> None:
    options = CertificateOptions(managed=True)
    shipped = manifests(ROOT / "deploy" / "base" / "webhook", ROOT / "deploy" / BY_CERT_MANAGER / "certificates.yaml")
    by_kind = {one["kind"]: one for one in shipped if one["kind"] in ("Service", "MutatingWebhookConfiguration")}
    service = by_kind["Service"]["metadata"]
    assert options.service == Named(service["namespace"], service["name"])
    assert options.webhook_configuration == by_kind["MutatingWebhookConfiguration"]["metadata"]["name"]
    [role] = [one for one in shipped if one["kind"] == "Role" and "certificates" in one["metadata"]["name"]]
    assert options.secret == Named(role["metadata"]["namespace"], role["rules"][0]["resourceNames"][0])
    [cluster_role] = [
        one for one in shipped if one["kind"] == "ClusterRole" and "certificates" in one["metadata"]["name"]
    ]
    assert cluster_role["rules"][0]["resourceNames"] == [options.webhook_configuration]
    dns_names = {name for one in shipped if one["kind"] == "Certificate" for name in one["spec"].get("dnsNames", ())}
    assert dns_names <= set(options.all_names) and options.all_names[0] in dns_names
