"""`requests` from recorded days and for a cluster: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from forecast_scheduler.cli import run
from kube.objects.quantity import parse_quantity
from tests.forecast_scheduler.recorded_evening import MOMENT, Evening, recorded_evening


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("requests"))


def test_from_recorded_days_it_says_what_is_saved_and_what_it_risks(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "requests.json"
    assert run(["requests", "--history", str(evening.history), "--days", "1", "--json", str(file)]) == 0
    figures = json.loads(file.read_text())
    assert figures["services"]
    for one in figures["services"]:
        assert (one["recommended"] is None) == (one["left_alone"] is not None)
        if one["recommended"] is not None:
            assert parse_quantity(one["recommended"]["cpu"]) > 0
            assert 0 <= one["over_cpu"] <= 1
    assert 0 <= figures["risk"]["cpu"] <= 1
    assert figures["risk"]["memory"] < 0.1
    assert figures["savings"]["pods_fit_recommended"] > 0
    assert figures["money"]["freed_per_month"] is None and figures["money"]["nodes_without_price"] == 2
    said = capfd.readouterr().out
    assert "Requests of one pod" in said
    assert "passed the recommendation" in said
    assert "sized: CPU by the expected curve" in said


def test_services_that_limits_hold_back_are_named_and_keep_what_they_used(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    history, file = shutil.copytree(evening.history, tmp_path / "history"), tmp_path / "requests.json"
    usage = pd.read_parquet(
        history / "usage.parquet", columns=["timestamp", "namespace", "service", "pod", "cpu_cores"]
    )
    placed = usage[usage["service"].astype(str).str.startswith("Deployment/")]
    name = placed["namespace"].astype(str) + "/" + placed["service"].astype(str)
    service = name.iloc[0]
    hits = placed[name == service].assign(throttled_share=0.5, oom_memory_bytes=2.0**40)
    hits = hits.assign(timestamp=hits["timestamp"].dt.floor("30min")).drop(columns=["service", "cpu_cores"])
    hits.drop_duplicates().to_parquet(history / "limit_hits.parquet", index=False)
    assert run(["requests", "--history", str(history), "--days", "1", "--json", str(file)]) == 0
    services = {one["service"]: one for one in json.loads(file.read_text())["services"]}
    assert [name for name, one in services.items() if one["hidden_demand"]] == [service]
    assert parse_quantity(services[service]["recommended"]["memory"]) >= 1.1 * 2**40
    assert f"{service}: throttled in 100 % of its peak half hours: real demand is hidden" in capfd.readouterr().out


def cluster_options(evening: Evening) -> list[str]:
    return ["--cluster", str(evening.cluster), "--models", str(evening.models), "--at", MOMENT]


def test_patches_name_the_containers_and_autoscalers_change_nothing(evening: Evening, tmp_path: Path) -> None:
    file, out = tmp_path / "requests.json", tmp_path / "patches.yaml"
    assert run(["requests", *cluster_options(evening), "--json", str(file), "--out", str(out)]) == 0
    figures = json.loads(file.read_text())
    assert figures["risk"] is None
    wanted = {one["service"]: one["recommended"] for one in figures["services"] if one["recommended"]}
    written = list(yaml.safe_load_all(out.read_text()))
    assert written
    for patch in written:
        service = f"{patch['metadata']['namespace']}/{patch['kind']}/{patch['metadata']['name']}"
        containers = patch["spec"]["template"]["spec"]["containers"]
        total = sum(parse_quantity(one["resources"]["requests"]["cpu"]) for one in containers)
        assert total == pytest.approx(parse_quantity(wanted[service]["cpu"]), abs=0.01)
    out = tmp_path / "vpa.yaml"
    assert run(["requests", *cluster_options(evening), "--format", "vpa", "--out", str(out)]) == 0
    written = list(yaml.safe_load_all(out.read_text()))
    assert written
    for one in written:
        assert one["kind"] == "VerticalPodAutoscaler"
        assert one["spec"]["updatePolicy"]["updateMode"] == "Off"
        assert one["status"]["recommendation"]["containerRecommendations"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--history", "HISTORY", "--models", "m"], "leave --models"),
        (["--history", "HISTORY", "--out", "x.yaml"], "--out needs the containers"),
        (["--cluster", "c.json", "--days", "2"], "--days is for recorded days"),
        (["--history", "HISTORY", "--format", "rows"], "rows"),
    ],
)
def test_what_contradicts_itself_is_refused(
    evening: Evening,
    options: list[str],
    said: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(evening.history) if one == "HISTORY" else one for one in options]
    assert run(["requests", *given]) == 2
    assert said in capfd.readouterr().err
