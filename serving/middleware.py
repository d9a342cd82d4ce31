"""The middleware that every service has around its routes, in one order."""

from __future__ import annotations

from fastapi import FastAPI

from serving.body_budget import BodyBudget
from serving.errors import ErrorAnswer, error_response
from serving.hosts import HostCheck, Hosts
from serving.kubernetes_access import KubernetesAccess
from serving.limits import BodyLimit, Busy, Guard, Observe
from serving.options import ServingOptions
from serving.security import SecurityHeaders, add_authentication


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
