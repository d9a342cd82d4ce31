"""What lies around the routes of every service: the middleware in one order, and the routes that go past the
framework's stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.body_budget import BodyBudget
from serving.hosts import HostCheck, Hosts
from serving.json_answers import ErrorAnswer, Refusal, error_response
from serving.kubernetes_access import KubernetesAccess
from serving.limits import BodyLimit, Busy, Guard, Observe
from serving.security import SecurityHeaders, add_authentication
from serving.server_settings import ServingOptions


def add_middleware(
    app: FastAPI,
    options: ServingOptions,
    *,
    receive_seconds: float,
    hosts: Hosts,
    access: KubernetesAccess | None,
    observe: Observe,
    answer: ErrorAnswer = error_response,
) -> bool:
    """Put the limits and checks of all services around an application; return whether it asks for tokens.

    receive_seconds : a body must have arrived by then
    hosts           : names under which clients ask (hosts.py)
    access          : clients allowed in addition to those with a token of the files; None = none
    observe         : gets method, route, status and seconds of each request
    answer          : makes the body of an error

    Raises InputError if a token file cannot be used.
    """
    # Starlette runs what was added last first: read this from the bottom up.
    budget = BodyBudget(options.max_body_bytes)
    app.add_middleware(
        BodyLimit, max_bytes=options.max_body_bytes, seconds=receive_seconds, budget=budget, answer=answer
    )
    app.add_middleware(Busy, max_concurrent=options.max_concurrent, budget=budget, answer=answer)
    with_tokens = add_authentication(app, options.token_files, access, metrics_open=options.metrics_open, answer=answer)
    app.add_middleware(HostCheck, hosts=hosts, answer=answer)
    app.add_middleware(Guard, observe=observe, answer=answer)
    app.add_middleware(SecurityHeaders)
    return with_tokens


# Routes that are asked for every pod, answered without the framework's stack around its router.
#
# FastAPI brings each request through a dozen layers: exit stacks, dependencies, included routers. That is as much as
# all of our own middleware. The routes stay in the router, by which they are described and refused for other methods.


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
