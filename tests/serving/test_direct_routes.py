from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import PlainTextResponse, Response

from serving.json_answers import Refusal
from serving.middleware import DirectRoutes
from testing.app_client import AppClient

_router = APIRouter()


@_router.post("/ask")
async def _ask(request: Request) -> Response:
    if not await request.body():
        raise Refusal(415, "say something", {"Connection": "close"})
    return PlainTextResponse(
        f"{type(request.scope['route']).__name__}, without a stack: {'fastapi' not in _stack(request)}"
    )


def _stack(request: Request) -> str:
    """What FastAPI puts into the scope on the way to its routes."""
    return " ".join(key for key in request.scope if key.startswith("fastapi"))


def _client() -> AppClient:
    app = FastAPI()
    app.include_router(_router)
    app.add_middleware(DirectRoutes, routes=_router.routes)
    return AppClient(app)


def test_a_direct_route_answers_and_refuses_without_the_framework() -> None:
    with _client() as client:
        answer = client.post("/ask", content=b"x")
    assert (answer.status_code, answer.text) == (200, "APIRoute, without a stack: True")
    with _client() as client:
        answer = client.post("/ask", content=b"")
    assert (answer.status_code, answer.json()) == (415, {"error": "say something"})
    assert answer.headers["connection"] == "close"
