"""Pauses between tries are not waited for: the cluster is in memory."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_sleep(seconds: float) -> None:
        return None

    monkeypatch.setattr("kube.session.session_calls.asyncio.sleep", no_sleep)
