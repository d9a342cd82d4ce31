"""A uvicorn that would serve without the limits of connections.py is refused at the start."""

from __future__ import annotations

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from base.errors import InputError
from serving.protection_check import check_protection
from serving.server import ScorerServer
from serving.server_settings import ServerOptions

_ON_HEADERS = HttpToolsProtocol.on_headers_complete


def _with_the_application_of_all(self: Any) -> None:
    """As a uvicorn that does not ask each connection for its application."""
    self.app = self.config.loaded_app
    _ON_HEADERS(self)


def test_the_installed_uvicorn_keeps_all_limits() -> None:
    asyncio.run(check_protection())


def test_two_checks_at_once_leave_the_log_as_it_was(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The service and its probes begin together, each in a thread."""
    both, first_is_over = threading.Barrier(2), threading.Event()

    async def tried() -> None:
        both.wait(10)
        if threading.current_thread().name == "second":
            assert first_is_over.wait(10)
        logging.getLogger("uvicorn.error").error("of a tried connection")

    monkeypatch.setattr("serving.protection_check._check", tried)
    threads = [
        threading.Thread(target=lambda: asyncio.run(check_protection()), name=name) for name in ("first", "second")
    ]
    for thread in threads:
        thread.start()
    threads[0].join(10)
    logging.getLogger("uvicorn.error").error("of others meanwhile")
    first_is_over.set()
    threads[1].join(10)
    logging.getLogger("uvicorn.error").error("of others afterwards")
    assert [one.getMessage() for one in caplog.records] == ["of others meanwhile", "of others afterwards"]


@pytest.mark.parametrize(
    ("name", "replaced", "what"),
    [
        ("on_headers_complete", _with_the_application_of_all, "requests behind answers that are not read"),
        ("on_response_complete", None, "requests that follow one another"),
        ("pause_writing", None, "requests behind answers that are not read"),
    ],
    ids=["starts requests by itself", "has no answers that end", "does not note who reads nothing"],
)
def test_another_one_is_refused_and_the_service_does_not_start(
    monkeypatch: pytest.MonkeyPatch, name: str, replaced: Any, what: str
) -> None:
    if replaced is None:
        monkeypatch.delattr(HttpToolsProtocol, name)
    else:
        monkeypatch.setattr(HttpToolsProtocol, name, replaced)
    started: list[str] = []

    def on_started(url: str) -> None:
        started.append(url)
        server.stop()

    app = FastAPI()
    app.state.service = SimpleNamespace(draining=False)
    server = ScorerServer(app, ServerOptions(port=0, drain=0.0), on_started)
    with pytest.raises(InputError, match=f"does not let this service limit .*{what}.*install the version"):
        server.run()
    assert not started
