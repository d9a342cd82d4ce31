"""Asks an application in this process, without a socket. (Starlette's own test client warns about httpx.)"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import httpx
from fastapi import FastAPI


class AppClient:
    """Context manager. One event loop for all requests, as in a server."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = {"Content-Type": "application/json"}
        self._client = httpx.AsyncClient(transport=transport, base_url="http://scorer", headers=headers)

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()  # an unclosed loop fails some later test: ResourceWarning
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """One request."""
        return self._runner.run(self._client.request(method, path, **arguments))

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        """GET."""
        return self.request("GET", path, **arguments)

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        """POST."""
        return self.request("POST", path, **arguments)

    def together(self, *requests: tuple[str, str]) -> list[httpx.Response]:
        """Several requests (method, path) at once."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(*(self._client.request(method, path) for method, path in requests))

        return self._runner.run(all_of_them())
