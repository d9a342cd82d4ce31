"""Requests made from the OpenAPI documents, well-formed and not: no error of ours, and every answer as documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

import extender.answer_settings
import extender.service.extender_app
import scorer.service.app
import scorer.service.scorer_service_settings
from forecast.hot_share import HOT_SHARE
from serving.server_settings import ServingOptions
from testing.app_client import AppClient
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.documented import ask_every_operation
from tests.serving.served import served


def _scorer() -> FastAPI:
    return scorer.service.app.create_app(
        FakeScorer(5),
        scorer.service.scorer_service_settings.ScorerServiceOptions(serving=ServingOptions(max_body_bytes=2**20)),
        hot=HOT_SHARE,
    )


def _extender() -> FastAPI:
    patient = extender.answer_settings.ExtenderServiceOptions(deadline=20)
    return extender.service.extender_app.create_app(SimpleExtender(), patient, binder=SimpleBinder())


SERVICES = pytest.mark.parametrize(("service", "operations"), [(_scorer, 16), (_extender, 7)])


def _can_be_wrong(operation: Any) -> bool:
    # Any text is a name, so that wrong paths are hardly ever found, after seconds of search.
    return bool(operation.body or operation.query)


@SERVICES
def test_hundreds_of_requests_are_answered_as_documented(service: Callable[[], FastAPI], operations: int) -> None:
    with served(service()) as url:
        assert ask_every_operation(url, 20, can_be_wrong=_can_be_wrong) > 9 * operations
        assert httpx.get(f"{url}/readyz").status_code == 200


@SERVICES
def test_every_path_is_documented_and_its_examples_work(service: Callable[[], FastAPI], operations: int) -> None:
    examples = 0
    with AppClient(service()) as client:
        document = client.get("/openapi.json").json()
        found = [(path, operation) for path, methods in document["paths"].items() for operation in methods.values()]
        assert len(found) == operations
        for path, operation in found:
            assert operation["description"] and {"200", "401", "500", "503"} <= set(operation["responses"]), path
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for name, example in body.get("examples", {}).items():
                examples += 1
                answer = client.post(path, json=example["value"])
                # The made-up scorer knows one pod by name, and it is another one.
                assert answer.status_code == 200 or "is not known" in answer.text, (path, name, answer.text)
                assert "cannot" not in answer.text, (path, name, answer.text)
        assert examples >= 4
        schemas = document["components"]["schemas"].values()
        assert service is _extender or all(schema.get("description") for schema in schemas)
