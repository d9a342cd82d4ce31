from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from kubernetes import client

from base.errors import InputError
from kube.client.api_answer import NO_ANSWER, NOT_SENT, ApiAnswer
from kube.session.api_session import ApiSession
from kube.session.session_calls import SessionOver
from testing.waiting import eventually
from tests.scheduler.binding.made_up import Scripted, scripted_server, session_to


def ask(session: ApiSession, method: str = "GET", body: bytes | None = None, seconds: float = 30.0) -> ApiAnswer:
    return session.submit(session.request(method, "/api?x=a%2Fb", body, seconds=seconds)).result(60)


def test_a_request_is_sent_as_it_is_and_its_answer_comes_back() -> None:
    seen = []

    def script(method: str, path: str, body: bytes, headers: dict[str, str]) -> Scripted:
        seen.append((method, path, body, headers))
        return Scripted(201, {"kind": "Status"})

    with scripted_server(script) as url, session_to(url) as session:
        answer = ask(session, "POST", b'{"a":1}')
        ask(session)
    assert (answer.status, answer.body, answer.is_success) == (201, b'{"kind": "Status"}', True)
    method, path, body, headers = seen[0]
    assert (method, path, body) == ("POST", "/api?x=a%2Fb", b'{"a":1}')
    assert headers["content-type"] == headers["accept"] == "application/json"
    assert headers["user-agent"] == "forecast-scheduler" and "content-type" not in seen[1][3]


def test_nobody_there_a_connection_that_ends_and_silence_are_no_answer() -> None:
    over = threading.Event()

    def silent(*_: object) -> Scripted:
        over.wait(60)
        return Scripted()

    with session_to() as session:
        assert ask(session).status == NO_ANSWER
    with scripted_server(lambda *_: Scripted(drop=True)) as url, session_to(url) as session:
        assert ask(session, "POST", b"{}").status == NO_ANSWER
    with scripted_server(silent) as url, session_to(url) as session:
        answer = ask(session, seconds=0.1)
        over.set()
        assert answer.status == NO_ANSWER and answer.text.startswith("no answer")


def test_who_does_not_lead_writes_nothing_but_may_read() -> None:
    seen, leads = [], [False]

    def script(method: str, *_: object) -> Scripted:
        seen.append(method)
        return Scripted(200)

    with scripted_server(script) as url, session_to(url, may_write=lambda: leads[0]) as session:
        for method in ("POST", "PATCH", "PUT", "DELETE"):
            assert ask(session, method, b"{}").status == NOT_SENT
        assert ask(session).status == 200
        leads[0] = True
        assert ask(session, "POST", b"{}").status == 200
    assert seen == ["GET", "POST"]


def test_a_token_that_was_rotated_is_read_again_when_it_is_refused() -> None:
    valid = ["first"]

    def script(method: str, path: str, body: bytes, headers: dict[str, str]) -> Scripted:
        return Scripted(200 if headers.get("authorization") == f"Bearer {valid[0]}" else 401)

    with scripted_server(script) as url:
        configuration = client.Configuration()
        configuration.host, configuration.proxy = url, None
        configuration.api_key["BearerToken"] = "Bearer first"
        session = ApiSession(client.ApiClient(configuration))
        session.start()
        try:
            assert ask(session).status == 200
            valid[0] = "second"
            configuration.api_key["BearerToken"] = "Bearer second"
            ask(session)
            assert eventually(lambda: ask(session).status == 200)
        finally:
            session.stop()


def test_after_the_end_nothing_is_taken() -> None:
    with session_to() as session:
        waiting = session.submit(asyncio.sleep(3600))
    with pytest.raises(CancelledError):
        waiting.result(10)
    with pytest.raises(SessionOver):
        session.submit(asyncio.sleep(0))
    with pytest.raises(SessionOver):
        session.call_soon(print)
    session.stop()


def test_a_certificate_that_is_none_is_said_before_anything_starts(tmp_path: Path) -> None:
    broken = tmp_path / "ca.crt"
    broken.write_text("no certificate")
    configuration = client.Configuration()
    configuration.host, configuration.ssl_ca_cert = "https://127.0.0.1:9", None
    api = client.ApiClient(configuration)
    configuration.ssl_ca_cert = str(broken)
    with pytest.raises(InputError, match=r"certificates for https://127.0.0.1:9 cannot be used .*ca\.crt"):
        ApiSession(api)
