"""Credentials that cannot be used are refused, and never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import InputError
from testing.servers.bad_proxy import BadProxy, self_signed
from testing.servers.prometheus import PrometheusServer
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import ConnectionOptions


@pytest.mark.parametrize(("content", "message"), [(b"one\ntwo", "has several lines"), (b"\xff\xfe\x00", "is not text")])
def test_a_file_that_holds_no_secret(content: bytes, message: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    options = ConnectionOptions(bearer_token_file=token)
    with pytest.raises(InputError, match=rf"bearer_token_file .*token {message}"):
        PrometheusConnection("http://127.0.0.1:1", options).instant("pod_cpu", "up")


def test_secrets_in_the_url_and_broken_headers_are_refused_without_repeating_them() -> None:
    with pytest.raises(InputError, match=r"prometheus\.password_file") as refused:
        PrometheusConnection("http://me:secret@127.0.0.1:9090")
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="X-Scope-OrgID has a line break"):
        PrometheusConnection("http://127.0.0.1:9090", ConnectionOptions(headers={"X-Scope-OrgID": "a\nb"}))


def test_a_server_that_asks_for_our_certificate_gets_it(tmp_path: Path) -> None:
    both = self_signed(tmp_path)  # server and client show the same one
    with (
        PrometheusServer(tmp_path / "tsdb") as server,
        BadProxy(server.url, certificate=both, client_authority=both) as proxy,
    ):
        ours = ConnectionOptions(ca_file=both, cert_file=both, key_file=both)
        assert PrometheusConnection(proxy.url, ours).instant("pod_cpu", "vector(7)").values.tolist() == [7]
        without = ConnectionOptions(ca_file=both, patience=0.1)
        with pytest.raises(InputError, match=r"no secure connection|cannot be reached|broke off the TLS handshake"):
            PrometheusConnection(proxy.url, without).instant("pod_cpu", "vector(7)")
    with pytest.raises(InputError, match=r"prometheus\.cert_file .*missing\.pem cannot be read"):
        PrometheusConnection("https://127.0.0.1:1", ConnectionOptions(cert_file=tmp_path / "missing.pem"))
