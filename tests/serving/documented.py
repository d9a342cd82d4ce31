"""Requests made from an OpenAPI document, well-formed and not; every answer has to be as documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

CHECKS: Any = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


def ask_every_operation(
    url: str, requests: int, *, can_be_wrong: Callable[[Any], bool] = lambda operation: bool(operation.body)
) -> int:
    """Send up to so many requests to every operation, half of them not as documented; return how many were sent.

    can_be_wrong : whether requests that are not as documented can be made of an operation
    """
    sent = 0
    api: Any = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in api.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode if can_be_wrong(operation) else [GenerationMode.POSITIVE]:

            @settings(max_examples=requests, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                nonlocal sent
                sent += 1
                case.call_and_validate(checks=CHECKS)

            ask()
    return sent
