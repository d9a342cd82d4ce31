"""The OpenAPI document of the scheduling process: the scorer's, and bodies of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI

from scheduler.service import bodies
from scorer.service import openapi
from serving.documents import bodies_of

_DESCRIPTION = "Which pods wait for what in our own scheduling loops, beside what the scorer inside knows.\n\n"


def describe(app: FastAPI, *, with_tokens: bool, more: Iterable[type] = ()) -> dict[str, Any]:
    """The document of the application. more: bodies of further routes."""
    types = [*bodies_of(bodies), *more]
    document = openapi.describe(app, with_tokens=with_tokens, more=types)
    document["info"]["description"] = _DESCRIPTION + document["info"]["description"]
    return document
