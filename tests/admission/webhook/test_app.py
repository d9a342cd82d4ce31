"""The service around the reviews: what is answered when, what is counted, and its document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from admission.advice.advisor_client import AskOutcome
from admission.webhook.review_answers import AdmissionOutcome
from admission.webhook.webhook_app import create_app
from testing.app_client import AppClient
from testing.reviews import patched, review_of
from tests.admission.webhook.simple_store import SimpleStore, simple_review
from tests.serving.documented import ask_every_operation
from tests.serving.served import ROOT, served

JSON = {"Content-Type": "application/json"}
POD: dict[str, Any] = {"metadata": {}, "spec": {}}


@pytest.fixture
def store() -> SimpleStore:
    return SimpleStore()


@pytest.fixture
def client(store: SimpleStore) -> Iterator[AppClient]:
    with AppClient(create_app(simple_review, store)) as client:
        yield client


def _metric(client: AppClient, series: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == series)


def test_a_review_is_answered_and_counted(client: AppClient) -> None:
    answer = client.post("/mutate?timeout=2s", content=review_of(POD, uid="u-7"), headers=JSON)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    assert answer.json()["response"]["uid"] == "u-7"
    assert patched(POD, answer.json())["metadata"] == {"annotations": {"a": "b"}}
    client.post("/mutate", content=review_of(POD, dryRun=True), headers=JSON)
    assert _metric(client, 'forecast_webhook_reviews_total{outcome="shaped"}') == 2
    assert _metric(client, 'forecast_webhook_applied_total{binding="evening"}') == 1
    assert _metric(client, "forecast_webhook_duration_seconds_count") == 2
    assert _metric(client, 'forecast_webhook_http_requests_total{route="/mutate",status="200"}') == 2


def test_templates_are_counted_as_they_are_now_and_gone_bindings_are_forgotten(
    client: AppClient, store: SimpleStore
) -> None:
    client.post("/mutate", content=review_of(POD), headers=JSON)
    names = ("templates", "bindings", "bindings_broken", "ready")
    assert [_metric(client, f"forecast_webhook_{name}") for name in names] == [1, 2, 1, 1]
    store.templates.bindings.clear()
    store.templates.problems.clear()
    assert [_metric(client, f"forecast_webhook_{name}") for name in names] == [1, 0, 0, 1]
    assert "applied_total{" not in client.get("/metrics").text


def test_the_page_about_it_lists_every_metric_and_outcome(client: AppClient) -> None:
    page = (ROOT / "docs" / "operate" / "webhook.md").read_text()
    documented = set(re.findall(r"`(forecast_webhook_[a-z_]+)[`{]", page))
    exported = set(re.findall(r"^# TYPE (forecast_webhook_\w+) ", client.get("/metrics").text, re.MULTILINE))
    of_parts = {
        *("forecast_webhook_certificate_expiry_timestamp_seconds", "forecast_webhook_preferences_total"),
        *("forecast_webhook_holds_pods", "forecast_webhook_unadvised_pods_total"),
        *("forecast_webhook_released_pods_total", "forecast_webhook_certificate_failures_total"),
        *("forecast_webhook_certificate_secret_writes_total", "forecast_webhook_ca_bundle_writes_total"),
    }
    # prometheus_client adds a series with the time of creation to each counter and histogram.
    assert documented - of_parts == {name for name in exported if not name.endswith("_created")}
    assert all(f"`{outcome.value}`" in page for outcome in (*AdmissionOutcome, *AskOutcome))


@pytest.mark.parametrize("ready", [True, False])
def test_before_it_is_ready_it_leaves_the_pod_to_the_failure_policy(
    ready: bool, client: AppClient, store: SimpleStore
) -> None:
    store.ready = ready
    status = 200 if ready else 503
    assert client.get("/readyz").status_code == status
    assert client.post("/mutate", content=review_of(POD), headers=JSON).status_code == status
    assert client.get("/healthz").status_code == 200
    client.app.state.service.draining = True  # while it ends it still answers
    assert client.get("/readyz").status_code == 503
    outcome = "shaped" if ready else "not_ready"
    assert _metric(client, f'forecast_webhook_reviews_total{{outcome="{outcome}"}}') == 1


@pytest.mark.parametrize(
    ("body", "headers", "status", "outcome"),
    [
        (b"{}", JSON, 400, "malformed"),
        (b"\xff", JSON, 400, "malformed"),
        (review_of(POD), {"Content-Type": "text/plain"}, 415, None),
        (review_of(POD, namespace="mistake"), JSON, 500, "failed"),
        (b"x" * (8 * 2**20 + 1), JSON, 413, None),
    ],
)
def test_what_cannot_be_answered_is_an_error_and_never_a_patch(
    client: AppClient, body: bytes, headers: dict[str, str], status: int, outcome: str | None
) -> None:
    answer = client.post("/mutate", content=body, headers=headers)
    assert answer.status_code == status and set(answer.json()) == {"error"}
    assert "KeyError" not in answer.text
    if outcome is not None:
        assert _metric(client, f'forecast_webhook_reviews_total{{outcome="{outcome}"}}') == 1


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(simple_review, SimpleStore())) as url:
        yield url


def test_requests_made_from_the_document_are_answered_as_documented(url: str) -> None:
    document = httpx.get(f"{url}/openapi.json").json()
    assert set(document["paths"]) == {"/mutate", "/healthz", "/readyz", "/metrics"}
    content = document["paths"]["/mutate"]["post"]["requestBody"]["content"]["application/json"]
    for example in content["examples"].values():
        answer = httpx.post(f"{url}/mutate", json=example["value"])
        assert answer.status_code == 200 and "patch" in answer.json()["response"]
    assert ask_every_operation(url, 40) > 80
    assert httpx.get(f"{url}/readyz").status_code == 200
