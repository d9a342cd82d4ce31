"""Every error leaves the service as {"error": "one sentence with the way out"}, wherever it was raised.

400 not JSON                      404 unknown path, node, service or pod named in the path
401 no or wrong token             405 wrong method
408 body too slow                 413 body too large
422 understood, but not usable    500 a mistake of ours; details are in the log, not in the answer
503 not ready, too busy, or the deadline passed; Retry-After says when to come back
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from base.errors import ForecastError, InputError
from serving.json_body import json_body

logger = logging.getLogger(__name__)

RETRY_SECONDS = "1"


class Refusal(Exception):
    """A request is not served; `message` is one sentence with the way out."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A msgspec structure as an answer; NaN and infinity become null."""
    return Response(json_body(body), status, dict(headers or {}), "application/json")


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as an answer."""
    extra = {"Retry-After": RETRY_SECONDS} if status == 503 else {}
    return json_response({"error": message}, status, extra | dict(headers or {}))


class ErrorAnswer(Protocol):
    """How an error is written: error_response, or that of a service with another protocol."""

    def __call__(self, status: int, message: str, headers: Mapping[str, str] | None = None, /) -> Response:
        """An error as an answer."""


def query_error(errors: Sequence[Any]) -> str:
    """What FastAPI found wrong with path or query parameters, in one sentence."""
    first = errors[0]
    where = " ".join(str(part) for part in first.get("loc", ()))
    return f"{where}: {first.get('msg', 'not usable')}; /openapi.json says what is allowed"


def add_error_handlers(app: FastAPI, answer: ErrorAnswer = error_response) -> None:
    """Translate exceptions to answers."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return answer(error.status, error.message, error.headers)

    async def input_error(request: Request, error: Exception) -> Response:
        return answer(422, str(error))

    async def unavailable(request: Request, error: Exception) -> Response:
        return answer(503, str(error))

    async def bad_parameters(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(422, query_error(error.errors()))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = {
            404: f"there is nothing at {request.url.path}: /openapi.json lists the paths",
            405: f"{request.method} is not allowed at {request.url.path}: /openapi.json lists the methods",
        }.get(error.status_code, str(error.detail))
        return answer(error.status_code, message, error.headers)

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(InputError, input_error)
    app.add_exception_handler(ForecastError, unavailable)
    app.add_exception_handler(RequestValidationError, bad_parameters)
    app.add_exception_handler(HTTPException, http_error)
