"""A dry run takes every pod as bound, and says so."""

from __future__ import annotations

import asyncio
import logging

import pytest

from placement.status import SUCCESS
from scheduler.dry_run import DryRun
from tests.scheduler.gangs.made_up import member


def test_what_would_be_bound_is_written_down(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="scheduler.dry_run"):
        status = asyncio.run(DryRun().bind(member("a", of=""), "node-1"))
    assert status == SUCCESS
    (record,) = caplog.records
    assert record.getMessage() == "would be bound"
    assert (vars(record)["pod"], vars(record)["node"]) == ("ml/pod-a", "node-1")
