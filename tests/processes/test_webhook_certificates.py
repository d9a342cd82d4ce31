"""Managed certificates with a real API server, which refuses every pod whose webhook it does not trust; with the rights
of deploy/base/webhook/rbac-certificates.yaml. tests/admission/certificates has what becomes of them over the years."""

from __future__ import annotations

import ssl
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509

from admission.certificates.certificate_secret import SecretContent, held_from
from admission.certificates.managed_certificates import open_certificates
from admission.webhook_settings import CertificateOptions, Named
from base.errors import InputError
from kube.client.kubernetes_client import api_client
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api, Refused, manifests, plain_pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import built_from
from testing.waiting import eventually

NAMESPACE = "forecast-scheduler"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
OPTIONS = CertificateOptions(
    secret=Named(NAMESPACE, "forecast-scheduler-webhook-certificates"),
    webhook_configuration="forecast-scheduler",
    service=Named(NAMESPACE, "forecast-scheduler-webhook"),
    names=("127.0.0.1",),
)
DAY_SECONDS = 86_400.0
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


def is_created(api: Api, name: str) -> bool:
    """Whether the API server can ask all webhooks about a pod of that name."""
    try:
        api.create(plain_pod(name, "cart"), "?dryRun=All")
    except Refused:
        return False
    return True


def serving(api: Api) -> x509.Certificate | None:
    """The one in the Secret."""
    try:
        found = held(api).serving
    except (Refused, ValueError):
        return None
    return None if found is None else found.certificate


def test_the_command_manages_its_certificate(plane: ControlPlane, api: Api, kubeconfig: Path, tmp_path: Path) -> None:
    """It starts before anybody calls it; the configuration comes later and names nobody to trust."""
    settings = {"webhook": {"certificates": {"managed": True, "names": ["127.0.0.1"], "every": "200ms"}}}
    arguments = ("--kubeconfig", plane.kubeconfig)
    with ScorerProcess(tmp_path, *arguments, settings=settings, ready=False, command="webhook") as process:
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
        called = {"name": "one.example.com", "clientConfig": {"url": f"{process.url}/mutate"}, "rules": rules}
        webhook = called | {"admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail"}
        api.request("POST", CONFIGURATIONS, {"metadata": {"name": "forecast-scheduler"}, "webhooks": [webhook]})
        # Until the API server has heard of the configuration it creates pods without asking.
        assert eventually(lambda: all(bundles(api))), process.log
        assert eventually(lambda: is_created(api, "probe")), process.log
        trusting = ssl.create_default_context(cadata=bundles(api)[0].decode())
        metrics = httpx.get(f"{process.url}/metrics", verify=trusting).raise_for_status().text
        ends = held(api).authority.certificate.not_valid_after_utc.timestamp()
        [line] = [
            line for line in metrics.splitlines() if line.startswith("forecast_webhook_certificate_expiry_timestamp")
        ]
        assert 0 < float(line.split()[1]) - time.time() < 31 * DAY_SECONDS < ends - time.time()
        assert "forecast_webhook_ca_bundle_writes_total 1.0" in metrics
        # Lost altogether: a new authority, which the API server trusts, too.
        lost = held(api).authority.certificate
        api.request("DELETE", SECRET)
        assert eventually(lambda: serving(api) is not None), process.log
        assert held(api).authority.certificate != lost
        assert eventually(lambda: is_created(api, "again")), process.log
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
