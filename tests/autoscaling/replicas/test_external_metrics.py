"""The external metrics API as kube-apiserver asks it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from autoscaling.replicas.external_metrics import VERSION, external_metrics_app, quantity
from autoscaling.replicas.loads_ahead import METRIC, LoadsAhead, ServiceLoadAhead
from testing.app_client import AppClient

PATH = f"/apis/{VERSION}/namespaces/shop/{METRIC}"


def _load(name: str, value: float, resource: str = "cpu") -> ServiceLoadAhead:
    return ServiceLoadAhead("shop", {"kind": "Deployment", "name": name, "resource": resource}, value, value)


@pytest.fixture
def client() -> Iterator[AppClient]:
    loads = LoadsAhead(
        1_700_000_000.0, {"shop": (_load("web", 1.2341), _load("cart", 2.0), _load("web", 3e9, "memory"))}
    )
    with AppClient(external_metrics_app(lambda: loads)) as client:
        yield client


def _names(answer: httpx.Response) -> list[tuple[str, str]]:
    assert answer.status_code == 200, answer.text
    return [(one["metricLabels"]["name"], one["value"]) for one in answer.json()["items"]]


def test_it_says_which_group_version_and_metric_there_is(client: AppClient) -> None:
    assert client.get("/apis").json()["groups"][0]["name"] == "external.metrics.k8s.io"
    assert client.get("/apis/external.metrics.k8s.io").json()["preferredVersion"]["version"] == "v1beta1"
    (resource,) = client.get(f"/apis/{VERSION}").json()["resources"]
    assert resource["name"] == METRIC and resource["namespaced"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("kind=Deployment,name=web,resource=cpu", [("web", "1235m")]),
        ("resource=cpu", [("web", "1235m"), ("cart", "2000m")]),
        ("name in (web),resource!=cpu", [("web", "3000000000000m")]),
        ("name=other", []),
        ("kind=Deployment,!resource", []),
    ],
)
def test_a_selector_chooses_services(client: AppClient, selector: str, found: list[tuple[str, str]]) -> None:
    answer = client.get(PATH, params={"labelSelector": selector})
    assert _names(answer) == found
    assert all(one["timestamp"] == "2023-11-14T22:13:20Z" for one in answer.json()["items"])
    assert _names(client.get(PATH.replace("/shop/", "/other/"), params={"labelSelector": selector})) == []
    assert len(_names(client.get(PATH))) == 3
    assert [quantity(value) for value in (0.0, 0.0001, 1.5, 2.0)] == ["0m", "1m", "1500m", "2000m"]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        (f"/apis/{VERSION}/namespaces/shop/requests", 404, "NotFound"),
        (f"{PATH}?labelSelector=a+b", 400, "BadRequest"),
        ("/metrics", 404, "NotFound"),
    ],
)
def test_errors_are_those_of_an_api_server(client: AppClient, path: str, status: int, reason: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["kind"], answer.json()["reason"]) == (status, "Status", reason)
