"""Requests made from the OpenAPI document, well-formed and not: no error of ours, and every answer as documented."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from extender.service.app import create_app
from testing.app_client import AppClient
from tests.extender.service.conftest import PATIENT
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender
from tests.serving.documented import ask_every_operation
from tests.serving.served import served


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(SimpleExtender(), PATIENT, binder=SimpleBinder())) as url:
        yield url


def test_hundreds_of_requests_are_answered_as_documented(url: str) -> None:
    assert ask_every_operation(url, 20) > 100
    assert httpx.get(f"{url}/readyz").status_code == 200


@pytest.mark.long
def test_ten_thousand_requests_are_answered_as_documented(url: str) -> None:
    assert ask_every_operation(url, 1400) > 8_000
    assert httpx.get(f"{url}/readyz").status_code == 200


def test_every_path_is_documented_and_nothing_else(client: AppClient) -> None:
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/filter",
        "/prioritize",
        "/preempt",
        "/bind",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["description"] and {"200", "401", "500", "503"} <= set(operation["responses"]), path
    schemas = document["components"]["schemas"]
    assert set(schemas["ExtenderArgs"]["properties"]) == {"Pod", "Nodes", "NodeNames"}
    assert "PodUID" in schemas["ExtenderBindingArgs"]["properties"]


def test_examples_of_the_document_work(client: AppClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/filter", "/prioritize", "/preempt", "/bind"):
        for name, example in paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"].items():
            answer = client.post(path, json=example["value"])
            assert answer.status_code == 200 and "cannot" not in answer.text, (path, name, answer.text)
