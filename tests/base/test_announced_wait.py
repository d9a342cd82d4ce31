"""A wait that lasts says what it waits for, and how long still; a short one says nothing."""

from __future__ import annotations

import logging
import socket
import time
from typing import Any

import pytest

from base import announced_wait as module
from base import object_store
from base.announced_wait import announced_wait
from base.errors import StoreError
from base.object_store import open_store
from testing.waiting import eventually


def _fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(one) for one in caplog.records if one.name == module.__name__]


def test_a_long_wait_is_announced_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.05)
    monkeypatch.setattr(module, "_NEXT_SECONDS", 0.05)
    with announced_wait("http://prometheus:9090", 60):
        eventually(lambda: len(_fields(caplog)) >= 2)
    lines = _fields(caplog)
    assert all(line["of"] == "http://prometheus:9090" and line["levelno"] == logging.WARNING for line in lines)
    assert all(0 < line["seconds_left"] <= 60 for line in lines)


def test_a_short_wait_says_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.05)
    with announced_wait("http://prometheus:9090"):
        pass
    time.sleep(0.1)
    assert not _fields(caplog)


def test_an_object_store_that_never_answers_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Failed before: s3fs repeated the request in silence for six minutes."""
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.1)
    monkeypatch.setattr(object_store, "_FIRST_ANSWER_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        with pytest.raises(StoreError, match=r"bucket/models: no answer within 1 s"):
            open_store("s3://bucket/models").files("v1")
    assert [line["of"] for line in _fields(caplog)] == ["s3://bucket/models"]
