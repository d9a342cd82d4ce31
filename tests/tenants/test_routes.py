"""GET /v1/tenants and the page, of tables in memory."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from scorer.service.app import assembled
from scorer.service.scorer_openapi import describe
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from scorer.service.scorer_state import ScorerService
from tenants.elastic_quota import ElasticQuota
from tenants.tenant_report import live_report
from tenants.tenant_routes import tenants_router
from testing.app_client import AppClient
from tests.scorer.live_cluster import at
from tests.scorer.service.fake_scorer import FakeScorer
from tests.tenants.lending_world import BATCH, SHOP, LendingWorld, job_pod


def app_of(world: LendingWorld) -> Any:
    tables, scorer, options = world.live.scorer.tables, FakeScorer(1), ScorerServiceOptions()
    router = tenants_router(
        lambda n_hours: live_report(tables, world.tables.quotas, world.tables.need, n_hours=n_hours)
    )
    service = ScorerService(scorer, options, ScorerServiceMetrics(scorer, options, ()))
    return assembled("test", service, [router], describe)


def asked(world: LendingWorld, path: str) -> httpx.Response:
    with AppClient(app_of(world)) as client:
        return client.get(path)


@pytest.fixture
def world() -> LendingWorld:
    world = LendingWorld(18.0)
    world.put(job_pod("j0", on="node-0", cpu=5, started=at(17.5)))
    world.need.refresh()
    return world


def test_all_amounts_of_a_tenant(world: LendingWorld) -> None:
    found = asked(world, "/v1/tenants?hours=4").json()
    assert [one["tenant"] for one in found["tenants"]] == ["batch", "shop"] and found["problems"] == []
    batch, shop = found["tenants"]
    assert (batch["pods"], batch["waiting_pods"], batch["parent"]) == (1, 0, None)
    assert shop["resources"] == [
        {
            "resource": "cpu",
            "min": 10.0,
            "max": None,
            "used": 2.0,
            "waiting": 0.0,
            "borrowed": 0.0,
            "lent": 3.0,
            "owed": 3.0,
            "may_borrow": 0.0,
            "expected": [2.0, 9.0, 9.0, 2.0],
            "will_lend": [8.0, 1.0, 1.0, 8.0],
        }
    ]
    assert found["from_hour"] == "2026-05-19T18:00:00Z"
    (alone,) = asked(world, "/v1/tenants?hours=0&namespace=shop").json()["tenants"]
    assert alone["tenant"] == "shop" and alone["resources"][0]["expected"] == []
    assert asked(world, "/v1/tenants?hours=25").status_code == 422
    paths = asked(world, "/openapi.json").json()["paths"]
    assert "/v1/tenants" in paths and "/tenants" not in paths


def test_the_page_shows_the_same_and_escapes_names() -> None:
    bad = ElasticQuota("shop", "<script>alert(1)</script>")
    world = LendingWorld(18.0, quotas=[SHOP, BATCH, bad])
    world.need.refresh()
    answer = asked(world, "/tenants")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert "sandbox" in answer.headers["content-security-policy"]
    text = answer.text
    assert "<script>" not in text and "shop/&lt;script&gt;" in text
    for part in ("batch", "owed", "18:00", "19:00", "(1)"):
        assert part in text
    text = asked(LendingWorld(18.0, without_model=True), "/tenants").text
    assert "There is no forecast: all that is idle is lent." in text
