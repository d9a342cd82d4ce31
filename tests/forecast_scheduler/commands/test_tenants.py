"""`tenants` of a running service and of a cluster file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.cli import run
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_object, made_pod, seated
from tests.scorer.live_cluster import at
from tests.serving.served import served
from tests.tenants.lending_world import LendingWorld, job_pod
from tests.tenants.test_routes import app_of


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    world = LendingWorld(18.0)
    world.put(job_pod("j0", on="node-0", cpu=5, started=at(17.5)))
    world.need.refresh()
    with served(app_of(world)) as url:
        yield url


def test_tables_and_figures_of_tenants_there_are(
    url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["tenants", "--server", url, "--hours", "4"]) == 0
    text = capfd.readouterr().out
    for part in ("may borrow", "batch", "shop", "Expected need (lent)", "18:00", "21:00", "9 (1)", "2 (8)"):
        assert part in text
    assert run(["tenants", "--server", url]) == 0
    assert "Expected need" not in capfd.readouterr().out
    capfd.readouterr()
    assert run(["tenants", "--server", url, "--namespace", "shop", "--hours", "2", "--output", "json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [one["tenant"] for one in found["tenants"]] == ["shop"]
    assert found["tenants"][0]["resources"][0]["will_lend"] == [8, 1]
    assert run(["tenants", "--server", url, "--namespace", "not-there"]) == 0
    assert "there is no such tenant" in capfd.readouterr().out


def quota(namespace: str, **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": namespace}
    return made_object("ElasticQuota", namespace, "scheduling.x-k8s.io/v1alpha1", metadata=metadata, spec=spec)


def test_a_cluster_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = cluster_file(
        tmp_path,
        made_node("n0", cpu="16"),
        quota("shop", min={"cpu": "2"}, max={"cpu": "-1"}),
        quota("batch", min={"cpu": "6"}),
        seated(made_pod("there", cpu="3"), "n0"),
        made_pod("next", cpu="2"),
    )
    capfd.readouterr()
    arguments = ["--cluster", str(file), "--models", str(tmp_path / "none"), "--output", "json"]
    assert run(["tenants", *arguments]) == 0
    found = json.loads(capfd.readouterr().out)
    amounts = {one["tenant"]: one["resources"][0] for one in found["tenants"]}
    assert amounts["shop"]["borrowed"] == 1 and amounts["shop"]["waiting"] == 2 and amounts["batch"]["lent"] == 1
    assert len(found["problems"]) == 1 and found["from_hour"] is None


def test_a_server_and_a_file_exclude_each_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["tenants", "--server", "http://127.0.0.1:9", "--cluster", str(cluster_file(tmp_path))]) == 2
    assert "exclude each other" in capfd.readouterr().err
