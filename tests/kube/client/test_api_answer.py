from __future__ import annotations

import json

import pytest

from kube.client.api_answer import NO_ANSWER, NOT_SENT, answered, is_gone, not_sent, unanswered


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", 0), ("1", 1), (" 7 ", 7), ("86400", 30), ("-5", 0), ("soon", 0), ("²", 0), ("٣", 0), ("9" * 5000, 0)],
)
def test_how_long_the_server_wants_to_be_left_alone(header: str, seconds: float) -> None:
    assert answered(429, b"", header).retry_after_seconds == seconds


def test_an_answer_is_told_in_one_line_and_no_answer_is_no_request() -> None:
    answer = answered(409, b'{"kind":"Status","message":"pod cart-1 is\\n already assigned"}')
    assert answer.text == "409 pod cart-1 is already assigned" and not answer.is_success
    assert answered(502, b"<html>\nbad gateway").text == "502 <html> bad gateway"
    assert answered(500, b"\xff\xfe" * 400).text.startswith("500 ")
    assert len(answered(500, b"x" * 10_000).text) <= 400
    assert unanswered(TimeoutError()).status == NO_ANSWER
    assert unanswered(TimeoutError()).text == "no answer: TimeoutError"
    assert not_sent("not the leader").status == NOT_SENT


# Messages as Kubernetes 1.36.3 says them, shortened; the one with AdditionalErrorMsg is of its storage.
GONE = [
    (404, {"message": 'pods "v" not found'}),
    (409, {"message": 'Operation cannot be fulfilled on Pod "v": the UID in the precondition (a) does not match the'}),
    (409, {"message": "StorageError: invalid object, AdditionalErrorMsg: Precondition failed: UID in precondition: a"}),
    (422, {"message": "metadata.uid: Invalid", "details": {"causes": [{"field": "spec"}, {"field": "metadata.uid"}]}}),
]
THERE = [
    (200, {"message": "UID in precondition"}),
    (409, {"message": 'Operation cannot be fulfilled on pods "v": the object has been modified; please apply your'}),
    (422, {"message": "Forbidden", "details": {"causes": [{"field": "status.nominatedNodeName"}]}}),
    (422, {"message": "metadata.uid", "details": None}),
    (403, {"message": "pods is forbidden"}),
    (409, ["odd"]),
]


@pytest.mark.parametrize(("status", "body"), GONE)
def test_the_object_is_gone(status: int, body: object) -> None:
    assert is_gone(answered(status, json.dumps(body).encode()))


@pytest.mark.parametrize(("status", "body"), THERE)
def test_the_object_is_still_there(status: int, body: object) -> None:
    assert not is_gone(answered(status, json.dumps(body).encode()))
