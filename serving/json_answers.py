"""Answers as JSON, and every error as {"error": "one sentence with the way out"}, wherever it was raised."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from base.errors import ForecastError, InputError

_DIGITS: Final = 7
"""Significant digits of numbers in arrays: what is more is noise and traffic."""

logger = logging.getLogger(__name__)
RETRY_SECONDS = "1"


def json_body(value: object) -> bytes:
    """A msgspec structure as JSON; NaN and infinity become null. Raises TypeError for what JSON cannot hold."""
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{type(value).__name__} has no JSON form: turn it into a struct, a list or a number")
    return (rounded(value) if value.dtype.kind == "f" else value).tolist()


def rounded(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers to seven significant digits, as float64; NaN and infinity stay."""
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        magnitude = np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.where(np.isfinite(magnitude), _DIGITS - 1 - magnitude, 0.0)
        result = np.round(values * scale) / scale
    return np.where(np.isfinite(result), result, values)


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
