"""Answers of an API server or of a service of ours that would take more memory, or more time, than they may."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube.client.kubernetes_client import api_client, send
from kube.session.api_session import ApiSession
from serving.remote_service import RemoteAddress, RemoteService, ServiceUnavailable
from tests.kube.scripted_server import Answer, ScriptedServer

LARGE = Answer(chunks=[b"x" * 2_000])


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube.client.api_answer.read_answer.__kwdefaults__", {"most": 1_000})
    monkeypatch.setattr("kube.session.api_session.LARGEST_ANSWER", 1_000)


def test_a_request_reads_no_more_than_it_may_and_the_next_one_works(tmp_path: Path) -> None:
    with ScriptedServer(lambda number, query: LARGE if number == 0 else Answer(chunks=[b"small"])) as server:
        api = api_client(server.kubeconfig(tmp_path))
        too_large = send(api, "GET", "/version", seconds=5.0)
        assert too_large.status == 0 and "larger than 1,000 bytes, the most that is read of one" in too_large.why_none
        assert send(api, "GET", "/version", seconds=5.0).body == b"small"


def test_an_answer_that_drips_ends_with_its_time(tmp_path: Path) -> None:
    drips = Answer(chunks=[b"x"], hold=30.0)
    with ScriptedServer(lambda number, query: drips) as server:
        assert send(api_client(server.kubeconfig(tmp_path)), "GET", "/version", seconds=0.3).status == 0


def test_the_session_takes_such_an_answer_for_none(tmp_path: Path) -> None:
    with ScriptedServer(lambda number, query: LARGE if number == 0 else Answer(chunks=[b"small"])) as server:
        session = ApiSession(api_client(server.kubeconfig(tmp_path)))
        session.start()
        try:
            answers = [session.submit(session.request("GET", "/", None, seconds=5.0)).result(30) for _ in range(2)]
        finally:
            session.stop()
    assert answers[0].status == 0 and "larger than 1,000 bytes" in answers[0].text
    assert answers[1].body == b"small"


def test_a_service_of_ours_that_answers_too_much_is_unavailable(tmp_path: Path) -> None:
    with ScriptedServer(lambda number, query: LARGE) as server:
        host = api_client(server.kubeconfig(tmp_path)).configuration.host
        service = RemoteService(RemoteAddress(host, seconds=5.0), "scorer")
        with pytest.raises(ServiceUnavailable, match="does not answer: the answer is larger than 1,000 bytes"):
            service.request("GET", "/v1/status")
        service.close()
