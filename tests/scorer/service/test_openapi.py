"""Requests made from the OpenAPI document, well-formed and not: no error of ours, and every answer as documented."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from scorer.service.app import create_app
from scorer.service.options import ServiceOptions
from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.documented import ask_every_operation
from tests.serving.served import served

OPERATIONS = 16


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(FakeScorer(5), ServiceOptions(max_body_bytes=2**20))) as url:
        yield url


def _can_be_wrong(operation: Any) -> bool:
    # Any text is a name, so that wrong paths are hardly ever found, after seconds of search.
    return bool(operation.body or operation.query)


def test_hundreds_of_requests_are_answered_as_documented(url: str) -> None:
    assert ask_every_operation(url, 20, can_be_wrong=_can_be_wrong) > 150
    assert httpx.get(f"{url}/readyz").status_code == 200


@pytest.mark.long
def test_ten_thousand_requests_are_answered_as_documented(url: str) -> None:
    assert ask_every_operation(url, 1400, can_be_wrong=_can_be_wrong) > 10_000
    assert httpx.get(f"{url}/readyz").status_code == 200


def test_every_path_is_documented_and_nothing_else(client: AppClient) -> None:
    document = client.get("/openapi.json").json()
    operations = [(path, method) for path, methods in document["paths"].items() for method in methods]
    assert len(operations) == OPERATIONS
    for path, method in operations:
        operation = document["paths"][path][method]
        assert operation["description"] and {"200", "401", "500", "503"} <= set(operation["responses"]), path
    for schema in document["components"]["schemas"].values():
        assert schema.get("description"), schema


def test_examples_of_the_document_work(client: AppClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/v1/scores", "/v1/explain"):
        for name, example in paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"].items():
            answer = client.post(path, json=example["value"])
            # The fake knows one pod by name, and it is another one.
            assert answer.status_code == 200 or "is not known" in answer.json()["error"], (path, name, answer.text)
