"""Settings of the advisor's tests."""

from __future__ import annotations

import pytest

from kube.session import request_retries


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries of a request."""
    monkeypatch.setattr(request_retries, "_PAUSE_SECONDS", 0.0)
