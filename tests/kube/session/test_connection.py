"""TLS as the official client's: who is trusted, who asks, and by which name the server is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from kube.client.api_answer import NO_ANSWER, ApiAnswer
from kube.session.api_session import ApiSession
from testing.servers.bad_proxy import BadProxy, first, self_signed
from tests.scheduler.binding.made_up import Scripted, scripted_server


def configuration(host: str, **settings: Any) -> client.Configuration:
    made = client.Configuration()
    made.host, made.proxy = host, None
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def asked(configuration: client.Configuration) -> ApiAnswer:
    """What the server answers to one GET."""
    session = ApiSession(client.ApiClient(configuration))
    session.start()
    try:
        return session.submit(session.request("GET", "/", None, seconds=30)).result(60)
    finally:
        session.stop()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return self_signed(tmp_path)


def test_only_who_is_trusted_is_talked_to(certificate: Path) -> None:
    with BadProxy("", first("200", "200"), certificate=certificate) as server:
        assert asked(configuration(server.url)).status == NO_ANSWER
        assert asked(configuration(server.url, ssl_ca_cert=str(certificate))).status == 200
        assert asked(configuration(server.url, verify_ssl=False)).status == 200


def test_a_client_certificate_says_who_asks(certificate: Path) -> None:
    with BadProxy("", first("200"), certificate=certificate, client_authority=certificate) as server:
        nobody = configuration(server.url, ssl_ca_cert=str(certificate))
        assert asked(nobody).status == NO_ANSWER
        known = configuration(server.url, ssl_ca_cert=str(certificate), cert_file=str(certificate))
        assert asked(known).status == 200


def test_the_server_may_be_known_by_another_name(certificate: Path) -> None:
    with BadProxy("", first("200"), certificate=certificate) as server:
        by_name = server.url.replace("127.0.0.1", "localhost")
        assert asked(configuration(by_name, ssl_ca_cert=str(certificate))).status == NO_ANSWER
        named = configuration(by_name, ssl_ca_cert=str(certificate), tls_server_name="127.0.0.1")
        assert asked(named).status == 200


def test_requests_go_through_the_proxy_that_is_set() -> None:
    seen = []

    def script(method: str, path: str, *rest: object) -> Scripted:
        seen.append(path)
        return Scripted(200)

    with scripted_server(script) as url:
        assert asked(configuration("http://kubernetes.invalid:6443", proxy=url)).status == 200
    assert seen == ["http://kubernetes.invalid:6443/"]
