from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import PlainTextResponse, Response

from serving.direct_routes import DirectRoutes
from serving.errors import Refusal
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


def test_a_direct_route_is_answered_without_the_stack_of_the_framework_and_named_in_the_scope() -> None:
    with _client() as client:
        answer = client.post("/ask", content=b"x")
    assert (answer.status_code, answer.text) == (200, "APIRoute, without a stack: True")


def test_a_direct_route_refuses_in_the_words_of_the_service() -> None:
    with _client() as client:
        answer = client.post("/ask", content=b"")
    assert (answer.status_code, answer.json()) == (415, {"error": "say something"})
    assert answer.headers["connection"] == "close"
