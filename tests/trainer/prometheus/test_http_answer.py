"""What an HTTP answer means, sentence by sentence."""

from __future__ import annotations

import gc

import msgspec
import pytest

from base.errors import InputError
from trainer.prometheus.http_answer import (
    CredentialsRefused,
    NoPrometheusApi,
    QueryResult,
    TooManySamples,
    Transient,
    interpret,
)

_URL = "http://prometheus:9090"


def _answer(status: int, body: object, content_type: str = "application/json; charset=utf-8") -> QueryResult:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return interpret(status, content_type, raw, name="pod_cpu", query="up", url=_URL)


def _error(text: str) -> dict[str, str]:
    return {"status": "error", "errorType": "execution", "error": text}


@pytest.mark.parametrize("result_type", ["matrix", "vector"])
def test_a_good_answer_is_decoded(result_type: str) -> None:
    document = {"status": "success", "data": {"resultType": result_type, "result": [1]}, "warnings": ["slow"]}
    found = _answer(200, document)
    assert list(found.pieces) == [[1]] and found.warnings == ["slow"]
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (
            200,
            {"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}},
            InputError,
            "returns a scalar, it must return",
        ),
        (
            200,
            {"status": "success", "data": {"resultType": "string", "result": [0, "a"]}},
            InputError,
            r"prometheus\.queries\.pod_cpu",
        ),
        (200, b'{"data": {"resultType": "matrix", "resu', Transient, "cut off or foreign"),
        (200, {"login": "please"}, Transient, "cut off or foreign"),
        (200, ["data"], Transient, "cut off or foreign"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": "none"}}, Transient, "foreign result"),
        (200, {"status": "error", "data": {"resultType": "matrix", "result": []}}, Transient, "cut off or foreign"),
        (200, b"[" * 100_000, Transient, "cut off or foreign"),
        (302, b"", InputError, "HTTP 302: is the URL right"),
        (400, _error("1:3: parse error"), InputError, r"pod_cpu \(1:3: parse error\): correct.*it is up"),
        (401, b"<html><b>no</b></html>", CredentialsRefused, r"refuses the credentials \(HTTP 401: no\)"),
        (404, b"404 page not found", NoPrometheusApi, "before /api/v1"),
        (422, _error("query processing would load too many samples into memory"), TooManySamples, "too many samples"),
        (422, _error("found duplicate series for the match group"), InputError, "cannot evaluate query pod_cpu"),
        (429, _error("slow down"), Transient, "429 .slow down."),
        (500, b"", Transient, "HTTP 500: look at"),
        (503, _error("query timed out in expression evaluation"), TooManySamples, "timed out"),
        (503, _error("shutting down"), Transient, "shutting down"),
    ],
)
def test_other_answers(status: int, body: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        _answer(status, body)
    assert type(caught.value) is error and gc.isenabled()


def test_text_with_status_200_names_what_came() -> None:
    with pytest.raises(Transient, match="answers with text/html, not a Prometheus API"):
        _answer(200, b"<html>", "text/html; charset=utf-8")
