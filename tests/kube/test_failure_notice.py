"""A failure is logged once per part of the work, until that part succeeds again."""

import logging

import pytest

from kube.failure_notice import FailureNotice


def _messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_each_part_warns_once_until_it_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    notice = FailureNotice(logging.getLogger("here"), "is not written", "is written again")
    notice.succeeded()
    for _ in range(3):
        notice.failed("refused", part="a", file="x")
    notice.failed("refused", part="b")
    assert _messages(caplog) == ["is not written"] * 2
    assert (caplog.records[0].why, caplog.records[0].file) == ("refused", "x")  # type: ignore[attr-defined]
    notice.succeeded(part="a", lost=3)
    notice.succeeded(part="a")
    notice.failed("refused", part="b")
    assert _messages(caplog)[2:] == ["is written again"]
    notice.failed("refused", part="a")
    assert _messages(caplog)[3:] == ["is not written"]
