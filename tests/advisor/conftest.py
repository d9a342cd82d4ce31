"""Settings of the advisor's tests."""

from __future__ import annotations

import pytest

from base.backoff import Backoff
from kube.session import session_calls


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries of a request."""
    monkeypatch.setattr(session_calls, "_BACKOFF", Backoff(0.0))
