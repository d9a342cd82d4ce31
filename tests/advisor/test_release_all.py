"""Our gate is removed from all pods that have it, page by page, whatever becomes of some of them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3
from kubernetes import client

from advisor import remove_all_gates
from advisor.remove_all_gates import ReleaseFailed, release_all
from kube.client.api_answer import ApiAnswer, answered, unanswered
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.gate_exemptions import ADVICE
from tests.advisor.made_up import OTHER_GATE
from tests.kube.scripted_server import page, pod_json


def held(name: str, *gates: str) -> dict[str, Any]:
    """A pod of a list, with these gates."""
    return pod_json(name, spec={"schedulingGates": [{"name": gate} for gate in gates]})


class ApiServer:
    """Pages of pods, one after the other, and what is answered to a patch; by name, an exception is no answer."""

    def __init__(self, *pages: list[dict[str, Any]]) -> None:
        self.pages = pages
        self.answers: dict[str, tuple[int, bytes] | Exception] = {}
        self.limits: list[str] = []
        self.patched: list[tuple[str, Any]] = []

    def send(
        self, api: client.ApiClient, method: str, path: str, body: bytes | None = None, **options: Any
    ) -> ApiAnswer:
        url = urlsplit(path)
        if method == "GET":
            assert url.path == "/api/v1/pods"
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            self.limits.append(query["limit"])
            number = int(query.get("continue", "p&0").removeprefix("p&"))
            answer = self.answers.get(f"page {number}")
            token = f"p&{number + 1}" if number + 1 < len(self.pages) else ""
            if answer is None:
                (whole,) = page(*self.pages[number], token=token).chunks
                answer = 200, whole
        else:
            assert method == "PATCH" and options["content_type"] == STRATEGIC_MERGE
            name = url.path.rpartition("/")[2]
            self.patched.append((url.path, json.loads(body or b"")))
            answer = self.answers.get(name, (200, b"{}"))
        if isinstance(answer, Exception):
            return unanswered(answer)
        return answered(*answer)

    @property
    def names(self) -> list[str]:
        return [path.rpartition("/")[2] for path, _ in self.patched]


def _release(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(remove_all_gates, "send", server.send)
    return str(release_all(client.ApiClient(client.Configuration())))


@pytest.fixture
def server() -> ApiServer:
    """Three pages, the second with none of ours."""
    return ApiServer(
        [held("a", ADVICE), held("free"), held("other", OTHER_GATE)],
        [held("free-2")],
        [held("b", OTHER_GATE, ADVICE), held("c", ADVICE)],
    )


def test_pods_of_all_pages_are_released_and_others_are_not(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _release(server, monkeypatch) == "3 pod(s) released from forecast-scheduler.io/advice"
    assert server.names == ["a", "b", "c"] and server.limits == ["500"] * 3
    path, body = server.patched[1]
    assert path == "/api/v1/namespaces/default/pods/b"
    assert body["spec"] == {"schedulingGates": [{"$patch": "delete", "name": ADVICE}]}
    assert body["metadata"]["uid"] == "uid-b"
    assert json.loads(body["metadata"]["annotations"][ADVICE]) == {"node": None, "because": "released by hand"}


def test_where_none_is_held_nothing_is_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ApiServer([held("free")])
    assert _release(server, monkeypatch).startswith("0 pod(s)") and server.patched == []


def test_one_that_is_refused_keeps_none_of_the_others(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers["a"] = 403, b'{"message":"pods is forbidden"}'
    with pytest.raises(ReleaseFailed, match=r"1 of 3 pods are still held by .*: 403 pods is forbidden"):
        _release(server, monkeypatch)
    assert server.names == ["a", "a", "b", "c"]


def test_a_pod_that_takes_no_note_is_released_without_one(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed before: a pod with 256 KiB of annotations stayed held."""
    too_long = 422, b'{"message":"annotations: Too long","details":{"causes":[{"field":"metadata.annotations"}]}}'
    answers = iter([too_long])
    send = server.send

    def once(*arguments: Any, **options: Any) -> ApiAnswer:
        made = send(*arguments, **options)
        refused = next(answers, None) if arguments[1] == "PATCH" else None
        return made if refused is None else answered(*refused)

    monkeypatch.setattr(server, "send", once)
    assert _release(server, monkeypatch).startswith("3 pod(s) released")
    assert server.names == ["a", "a", "b", "c"] and "annotations" not in server.patched[1][1]["metadata"]


@pytest.mark.parametrize(
    "answer",
    [
        (404, b'{"reason":"NotFound"}'),
        (422, b'{"details":{"causes":[{"field":"metadata.uid"}]}}'),
    ],
)
def test_one_that_is_gone_is_no_failure(
    server: ApiServer, answer: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["b"] = answer
    assert _release(server, monkeypatch).startswith("3 pod(s)")
    assert server.names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("number", "answer", "why"),
    [
        (0, (403, b'{"message":"no list"}'), "pods cannot be listed: 403 no list"),
        (2, (410, b'{"message":"expired"}'), "pods cannot be listed: 410 expired"),
        (0, urllib3.exceptions.ProtocolError("cut"), "does not answer: cut"),
        (1, OSError("no route"), "does not answer: no route"),
        (0, (200, b"<html>"), "pods cannot be listed: list of pods cannot be read"),  # failed before: a traceback
    ],
)
def test_a_list_that_fails_is_told(
    server: ApiServer,
    number: int,
    answer: tuple[int, bytes] | Exception,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.answers[f"page {number}"] = answer
    with pytest.raises(ReleaseFailed, match=why):
        _release(server, monkeypatch)
    assert server.patched == []


def test_one_that_cannot_be_read_keeps_none_of_the_others(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed before: it kept all of them, and the command ended with a traceback."""
    server.pages[1].append({"metadata": 7})
    why = r"3 pod\(s\) released from .*; 1 pod\(s\) cannot be read and may be held: .*metadata"
    with pytest.raises(ReleaseFailed, match=why):
        _release(server, monkeypatch)
    assert server.names == ["a", "b", "c"]


@pytest.mark.parametrize("error", [urllib3.exceptions.ProtocolError("cut"), OSError("no route")])
def test_an_api_server_that_falls_silent_between_is_told(
    server: ApiServer, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["b"] = error
    with pytest.raises(ReleaseFailed, match="does not answer"):
        _release(server, monkeypatch)
