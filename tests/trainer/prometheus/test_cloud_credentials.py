"""Managed servers let in who the cloud says we are: a real Prometheus behind gateways that check as the clouds' do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from base.errors import InputError
from testing.constants import with_constants
from testing.servers.bad_proxy import BadProxy, self_signed
from testing.servers.prometheus import PrometheusServer, free_port
from testing.servers.token_service import TokenService
from tests.trainer.prometheus.signed_requests import EXPIRED, SignatureCheck
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import Cloud, ConnectionOptions

REGION: Final = "eu-central-1"
QUERY: Final = 'label_replace(vector(7), "a", "b + c/*~ä", "", "")'
LONG_QUERY: Final = " + ".join(["vector(1)"] * 500)
"""Travels in the body of a POST."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with PrometheusServer(tmp_path_factory.mktemp("tsdb")) as running:
        yield running


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No identity but what a test gives."""
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return monkeypatch


def _connection(url: str, cloud: Cloud, **options: Any) -> PrometheusConnection:
    given = {"aws_region": REGION} if cloud is Cloud.AWS else {}
    connection = with_constants(ConnectionOptions(), cloud=cloud, first_patience=0.1, **(given | options))
    return PrometheusConnection(url, connection)


def _asks(connection: PrometheusConnection) -> None:
    now = datetime.now(UTC)
    assert connection.instant("pod_cpu", QUERY).values.tolist() == [7]
    assert connection.range("pod_cpu", QUERY, now - timedelta(minutes=5), now, 60).values.tolist() == [7] * 6
    assert connection.instant("pod_cpu", LONG_QUERY).values.tolist() == [500]


@pytest.mark.parametrize("token", ["", "of-the-session/+="])
def test_requests_are_signed_with_the_keys_of_the_environment(
    token: str, server: PrometheusServer, environment: pytest.MonkeyPatch
) -> None:
    check = SignatureCheck({"AKIDOFTHEENV": ("secret/+", token)}, region=REGION)
    environment.setenv("AWS_ACCESS_KEY_ID", "AKIDOFTHEENV")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "secret/+")
    if token:
        environment.setenv("AWS_SESSION_TOKEN", token)
    with BadProxy(server.url, refusal=check) as proxy:
        _asks(_connection(proxy.url, Cloud.AWS))
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        _asks(_connection(proxy.url, Cloud.AWS, aws_region=""))
        assert check.seen == ["AKIDOFTHEENV"] * 6
        with pytest.raises(InputError, match="Missing Authentication Token"):
            PrometheusConnection(proxy.url).instant("pod_cpu", QUERY)
        with pytest.raises(InputError, match="is invalid"):
            _connection(proxy.url, Cloud.AWS, aws_region="us-east-1").instant("pod_cpu", QUERY)
        check.keys["AKIDOFTHEENV"] = ("another", token)
        with pytest.raises(InputError, match="does not match the signature"):
            _connection(proxy.url, Cloud.AWS).instant("pod_cpu", QUERY)
        check.expired.add("AKIDOFTHEENV")
        with pytest.raises(InputError, match=rf"refuses the credentials \(HTTP 403: {EXPIRED}\).*prometheus\.cloud"):
            _connection(proxy.url, Cloud.AWS).instant("pod_cpu", QUERY)


class _TokenServiceOfAws:
    """Gives a new key for each good token, which ends soon enough that every request renews it."""

    def __init__(self, check: SignatureCheck) -> None:
        self._check, self.n_keys, self.good, self.status = check, 0, "", 400

    def __call__(self, path: str, form: dict[str, str]) -> tuple[int, str]:
        assert (form["Action"], form["RoleArn"]) == ("AssumeRoleWithWebIdentity", "arn:aws:iam::1:role/reads")
        if form["WebIdentityToken"] != self.good:
            error = "<Code>ExpiredTokenException</Code><Message>Token expired</Message>"
            return self.status, f"<ErrorResponse><Error>{error}</Error></ErrorResponse>"
        self.n_keys += 1
        key, secret, token = f"AKID{self.n_keys}", f"secret{self.n_keys}", f"token{self.n_keys}"
        self._check.expired |= set(self._check.keys)
        self._check.keys[key] = secret, token
        ends = (datetime.now(UTC) + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return 200, (
            '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            f"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}"
            f"</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{ends}</Expiration></Credentials>"
            "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )


def test_the_token_of_the_service_account_becomes_keys_that_are_renewed(
    server: PrometheusServer, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check = SignatureCheck({}, region=REGION)
    issuer = _TokenServiceOfAws(check)
    token, issuer.good = tmp_path / "token", "first"
    token.write_text("first")
    environment.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/reads")
    environment.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    environment.setenv("AWS_MAX_ATTEMPTS", "1")
    with TokenService(issuer) as service, BadProxy(server.url, refusal=check) as proxy:
        environment.setenv("AWS_ENDPOINT_URL_STS", f"http://{service.host}")
        connection = _connection(proxy.url, Cloud.AWS)
        _asks(connection)
        issuer.good = "second"  # the kubelet brings a new token, and the old one ends
        token.write_text("second")
        _asks(connection)
        assert len(set(check.seen)) == len(check.seen) == 6
        issuer.good = "third"
        n_requests = len(proxy.requests)
        with pytest.raises(
            InputError, match=r"AWS gives no credentials .*Token expired.*identity of the service account"
        ):
            connection.instant("pod_cpu", QUERY)
        assert len(proxy.requests) == n_requests  # nothing is sent with keys that have ended
        issuer.status = 503
        impatient = _connection(proxy.url, Cloud.AWS, patience=0.2)
        with pytest.raises(InputError, match=r"token service gives no answer .*NetworkPolicies"):
            impatient.instant("pod_cpu", QUERY)


def test_the_metadata_server_of_a_node_gives_tokens_of_google(
    server: PrometheusServer, environment: pytest.MonkeyPatch
) -> None:
    status = 200

    def answer(path: str, form: dict[str, str]) -> tuple[int, str]:
        if "/token" in path:
            assert "scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fmonitoring.read" in path
            return status, json.dumps({"access_token": "of-google", "expires_in": 3600, "token_type": "Bearer"})
        return 200, json.dumps({"email": "reads@project.example", "scopes": []}) if "recursive" in path else "project"

    environment.delenv("NO_GCE_CHECK")
    with TokenService(answer) as service, BadProxy(server.url, authorization="Bearer of-google") as proxy:
        for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
            environment.setenv(name, service.host)
        _asks(_connection(proxy.url, Cloud.GOOGLE))
        # Google's API refuses parameters that it does not know.
        assert not any("partial_response" in path for path in proxy.requests)
        status = 404
        with pytest.raises(InputError, match="Google gives no credentials for Prometheus"):
            _connection(proxy.url, Cloud.GOOGLE).instant("pod_cpu", QUERY)


def test_the_workload_identity_gives_tokens_of_azure(
    server: PrometheusServer, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate, token = self_signed(tmp_path), tmp_path / "token"
    token.write_text("good")

    def answer(path: str, form: dict[str, str]) -> tuple[int, str]:
        if "openid-configuration" in path:
            base = f"https://{service.host}/tenant"
            return 200, json.dumps(
                {"issuer": base, "authorization_endpoint": f"{base}/authorize", "token_endpoint": f"{base}/token"}
            )
        assert form["scope"] == "https://prometheus.monitor.azure.com/.default" and form["client_id"] == "reader"
        if form["client_assertion"] != "good":
            return 401, json.dumps({"error": "invalid_client", "error_description": "AADSTS700024: assertion expired"})
        return 200, json.dumps({"access_token": "of-azure", "expires_in": 3600, "token_type": "Bearer"})

    with (
        TokenService(answer, certificate=certificate) as service,
        BadProxy(server.url, authorization="Bearer of-azure") as proxy,
    ):
        environment.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        environment.setenv("AZURE_AUTHORITY_HOST", f"https://{service.host}")
        environment.setenv("AZURE_TENANT_ID", "tenant")
        environment.setenv("AZURE_CLIENT_ID", "reader")
        environment.setenv("AZURE_FEDERATED_TOKEN_FILE", str(token))
        _asks(_connection(proxy.url, Cloud.AZURE))
        token.write_text("bad")
        with pytest.raises(InputError, match=r"Azure gives no credentials .*AADSTS700024: assertion expired"):
            _connection(proxy.url, Cloud.AZURE).instant("pod_cpu", QUERY)


# Behind the test of a metadata server: Google's library looks for one as it is imported.
@pytest.mark.parametrize(
    ("cloud", "given", "message"),
    [
        (Cloud.AWS, {}, "no AWS credentials were found: give the service account an IAM role"),
        (Cloud.AWS, {"aws_region": ""}, r"no AWS region: set prometheus\.aws_region"),
        (Cloud.AWS, {"username": "me", "password_file": Path("password")}, r"prometheus\.cloud is aws.*take out"),
        (Cloud.GOOGLE, {}, r"Google gives no credentials .*default credentials were not found"),
        (Cloud.AZURE, {}, "Azure gives no credentials for Prometheus"),
    ],
)
def test_without_an_identity_the_start_says_so(cloud: Cloud, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _connection("http://127.0.0.1:1", cloud, **given)


LIBRARIES = {"aws": "botocore", "google": "google.auth", "azure": "azure.core"}


def _train_without_libraries(tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: here the libraries are installed."""
    script = f"""
import sys
sys.modules.update(dict.fromkeys({[*LIBRARIES.values()]}))
from forecast_scheduler.__main__ import main
sys.exit(main())
"""
    given = ["train", "--models", str(tmp_path / "m"), "--history", str(tmp_path / "h")]
    command = [sys.executable, "-c", script, *given, "--prometheus", f"http://127.0.0.1:{free_port()}"]
    environment = {"PATH": "", "HOME": str(tmp_path), "FORECAST_SCHEDULER_PROMETHEUS__PATIENCE": "0.1s"}
    return subprocess.run(command, env=environment | more, capture_output=True, text=True)


@pytest.mark.parametrize("cloud", LIBRARIES)
def test_a_library_that_is_not_installed_is_named(cloud: str, tmp_path: Path) -> None:
    refused = _train_without_libraries(tmp_path, FORECAST_SCHEDULER_PROMETHEUS__CLOUD=cloud)
    assert refused.returncode == 2 and f"pip install 'forecast-scheduler[{cloud}]'" in " ".join(refused.stderr.split())
