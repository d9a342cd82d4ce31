"""What the service asks of its clients, and says to them, in the protocol's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.service.app import create_app
from extender.service.options import ServiceOptions
from testing.app_client import AppClient
from tests.extender.service.questions import BINDING, nodes_question
from tests.extender.service.simple_extender import SimpleExtender

JSON_TYPE = {"Content-Type": "application/json"}


def test_a_body_that_is_too_large_is_refused(extender: SimpleExtender) -> None:
    with AppClient(create_app(extender, ServiceOptions(max_body_bytes=100))) as client:
        answer = client.post("/filter", content=b" " * 101, headers=JSON_TYPE)
        assert answer.status_code == 413 and "larger than 100 bytes" in answer.json()["Error"]
        assert client.post("/filter", content=b" " * 100, headers=JSON_TYPE).status_code == 400


def test_a_body_of_thousands_of_whole_nodes_is_answered_where_the_limit_is_raised(extender: SimpleExtender) -> None:
    """kube-scheduler sends 15 MB where nodeCacheCapable is false."""
    labels = {f"example.org/label-{i}": "x" * 40 for i in range(45)}
    items = [{"metadata": {"name": f"node-{i}", "labels": labels}} for i in range(4500)]
    question = nodes_question() | {"NodeNames": None, "Nodes": {"items": items}}
    with AppClient(create_app(extender, ServiceOptions(max_body_bytes=16 * 2**20, deadline=10))) as client:
        answer = client.post("/filter", json=question)
    assert answer.status_code == 200 and len(answer.json()["Nodes"]["items"]) == 4500
    assert answer.json()["Nodes"]["items"][7] == items[7]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/filter", 405), ("POST", "/healthz", 405), ("POST", "/nothing", 404), ("GET", "/docs", 404)],
)
def test_wrong_paths_and_methods_say_what_is_right(client: AppClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status and "/openapi.json" in answer.json()["Error"]


def test_tokens_are_asked_for_where_configured(extender: SimpleExtender, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("secret\n")
    with AppClient(create_app(extender, ServiceOptions(token_files=(tmp_path / "tokens",)))) as client:
        answer = client.post("/bind", json=BINDING)
        assert answer.status_code == 401 and "a token is needed" in answer.json()["Error"]
        assert client.post("/bind", json=BINDING, headers={"Authorization": "Bearer secret"}).status_code == 200
        assert client.get("/metrics").status_code == 401
        assert client.get("/healthz").status_code == 200
