"""Routes that are asked for every pod, answered without the framework's stack around its router.

FastAPI brings each request through a dozen layers: exit stacks, dependencies, included routers. That is as much as all
of our own middleware. The routes stay in the router, by which they are described and refused for other methods.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.errors import ErrorAnswer, Refusal, error_response


class DirectRoutes:
    """ASGI, innermost: answers POST to the fixed paths of `routes`. Their endpoints take the request and nothing else.

    Of exceptions they may raise Refusal only; any other is a mistake of ours, as everywhere.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute], answer: ErrorAnswer = error_response) -> None:
        self._app, self._answer = app, answer
        self._posted = {one.path: one for one in routes if isinstance(one, APIRoute) and one.methods == {"POST"}}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        posted = scope["type"] == "http" and scope["method"] == "POST"
        route = self._posted.get(scope["path"]) if posted else None
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route  # by which the request is counted
        try:
            response = await route.endpoint(Request(scope, receive))
        except Refusal as error:
            response = self._answer(error.status, error.message, error.headers)
        await response(scope, receive, send)
