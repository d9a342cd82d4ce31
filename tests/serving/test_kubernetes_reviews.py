from __future__ import annotations

import json
from typing import Any

import pytest

from base.errors import InputError
from serving.token_reviews import (
    ReviewFailed,
    User,
    access_review,
    check_delegation,
    is_allowed,
    token_review,
    user_of,
)


def _answer(**status: Any) -> bytes:
    return json.dumps({"kind": "Review", "status": status}).encode()


ALICE = {"username": "alice", "uid": "u-1", "groups": ["ops"], "extra": {"scopes": ["view"]}}


def test_a_token_is_asked_about_for_its_audiences() -> None:
    assert json.loads(token_review("t"))["spec"] == {"token": "t"}
    assert json.loads(token_review("t", ["b", "a"]))["spec"] == {"token": "t", "audiences": ["a", "b"]}


def test_everything_known_of_a_user_decides_about_their_access() -> None:
    user = user_of(201, _answer(authenticated=True, user=ALICE))
    assert user == User("alice", "u-1", ("ops",), (("scopes", ("view",)),))
    assert json.loads(access_review(user, "get", "/v1/nodes"))["spec"] == {
        "user": "alice",
        "uid": "u-1",
        "groups": ["ops"],
        "extra": {"scopes": ["view"]},
        "nonResourceAttributes": {"verb": "get", "path": "/v1/nodes"},
    }


@pytest.mark.parametrize(
    ("status", "audiences"),
    [
        pytest.param({}, [], id="nothing is said"),
        pytest.param({"authenticated": False, "user": ALICE}, [], id="not authenticated"),
        pytest.param({"authenticated": True}, [], id="no user"),
        pytest.param({"authenticated": True, "user": {"username": ""}}, [], id="no name"),
        pytest.param({"authenticated": True, "user": ALICE}, ["ours"], id="no audience is confirmed"),
        pytest.param({"authenticated": True, "user": ALICE, "audiences": ["theirs"]}, ["ours"], id="another audience"),
    ],
)
def test_a_token_that_is_not_confirmed_is_nobodys(status: dict[str, Any], audiences: list[str]) -> None:
    assert user_of(201, _answer(**status), audiences) is None
    confirmed = _answer(authenticated=True, user=ALICE, audiences=["ours", "other"])
    assert user_of(201, confirmed, audiences) is not None


@pytest.mark.parametrize(
    ("status", "allowed"),
    [({"allowed": True}, True), ({"allowed": True, "denied": True}, False), ({"allowed": False}, False), ({}, False)],
)
def test_access_is_what_is_allowed_and_not_denied(status: dict[str, bool], allowed: bool) -> None:
    assert is_allowed(201, _answer(**status)) == allowed


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b""), (429, b"{}"), (201, b"not JSON"), (201, b"{}"), (201, b'{"status": {"authenticated": "yes"}}')],
)
def test_an_answer_that_is_none_lets_nobody_in(status: int, body: bytes) -> None:
    with pytest.raises(ReviewFailed):
        user_of(status, body)


@pytest.mark.parametrize("refused", ["tokenreviews", "subjectaccessreviews"])
def test_a_missing_right_to_ask_is_an_input_error_with_the_way_out(refused: str) -> None:
    def ask(path: str, body: bytes) -> tuple[int, bytes]:
        return (403, b"") if path.endswith(refused) else (201, _answer())

    with pytest.raises(InputError, match=rf"create {refused}.* \(403\): .*system:auth-delegator"):
        check_delegation(ask)
