"""Credentials that cannot be used are refused, and never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from forecast.errors import InputError
from trainer.prometheus.connection import Connection, ConnectionOptions


@pytest.mark.parametrize(("content", "message"), [(b"one\ntwo", "has several lines"), (b"\xff\xfe\x00", "is not text")])
def test_a_file_that_holds_no_secret(content: bytes, message: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    options = ConnectionOptions("http://127.0.0.1:1", bearer_token_file=token)
    with pytest.raises(InputError, match=rf"bearer_token_file .*token {message}"):
        Connection(options).instant("pod_cpu", "up")


def test_secrets_in_the_url_and_broken_headers_are_refused_without_repeating_them() -> None:
    with pytest.raises(InputError, match=r"prometheus\.password_file") as refused:
        Connection(ConnectionOptions("http://me:secret@127.0.0.1:9090"))
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="X-Scope-OrgID has a line break"):
        Connection(ConnectionOptions("http://127.0.0.1:9090", headers={"X-Scope-OrgID": "a\nb"}))
