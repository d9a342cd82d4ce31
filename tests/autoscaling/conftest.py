"""Sessions with a real API server."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from base.errors import ForecastError
from kube.client.kubernetes_client import api_client
from kube.session.api_session import ApiSession
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane

LONG: Final = 90.0


class Api:
    """Requests of an administrator, and coroutines in the loop of the session."""

    def __init__(self, kubeconfig: Path) -> None:
        self.session = ApiSession(api_client(kubeconfig))
        self.session.start()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.session.submit(work).result(LONG)

    def request(self, method: str, path: str, body: Any = None, *, merge: bool = False) -> Any:
        content = "application/merge-patch+json" if merge else "application/json"
        encoded = None if body is None else json.dumps(body).encode()
        answer = self.session.submit(
            self.session.request(method, path, encoded, content_type=content, seconds=30)
        ).result(LONG)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return json.loads(answer.body)

    def items(self, path: str) -> list[Any]:
        return list(self.request("GET", path)["items"])


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


@pytest.fixture
def powerless(plane: ControlPlane) -> Iterator[ApiSession]:
    """Of a user without any rights."""
    made = ApiSession(api_client(plane.write_kubeconfig("nobody", plane.powerless_token)))
    made.start()
    yield made
    made.stop()


def refusal(session: ApiSession, work: Coroutine[Any, Any, None]) -> str:
    """Return the text of the error with which the work of a hand fails."""
    with pytest.raises(ForecastError) as caught:
        session.submit(work).result(LONG)
    return str(caught.value)
