"""`nodes` and `node` on a recorded evening, computed here and asked of a running scorer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from forecast.hot_share import HOT_SHARE
from forecast_scheduler.cli import run
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, open_scorer
from forecast_scheduler.settings.document import Settings
from scorer.service.app import create_app
from testing.servers.prometheus import free_port
from tests.forecast_scheduler.recorded_evening import MOMENT, Evening, recorded_evening
from tests.serving.served import served


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


@pytest.fixture(scope="module")
def url(evening: Evening) -> Iterator[str]:
    """A scorer service on the same cluster, model and usage."""
    at = datetime.fromisoformat(MOMENT)
    inputs = Inputs(cluster=evening.cluster, models=str(evening.models), history=evening.history, at=at)
    with open_scorer(Settings(), inputs) as (scorer, background):
        background.look_for_model()
        scorer.tables.measure()
        scorer.tables.tick()
        scorer.tables.refresh_overview()
        with served(create_app(scorer, hot=HOT_SHARE)) as url:
            yield url


def figures(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run([*arguments, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def said(capfd: pytest.CaptureFixture[str]) -> str:
    return " ".join(capfd.readouterr().err.split())


def test_the_hottest_nodes_come_first_and_one_has_its_hours(
    evening: Evening, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    capfd.readouterr()
    assert run(["nodes", *evening.options()]) == 0
    text = capfd.readouterr().out
    assert "2 of 2 nodes, expected peaks of the next 24 h" in text and "%" in text
    found = figures(capfd, "nodes", *evening.options())
    shares = [node["peak"]["share"] for node in found["nodes"]]
    assert shares == sorted(shares, reverse=True) and len(shares) == 2
    one = figures(capfd, "nodes", *evening.options(), "--top", "1", "--on", "2026-10-14")
    assert (one["peak_hours"], one["n_nodes"], len(one["nodes"])) == ("2026-10-14", 2, 1)
    assert one["nodes"][0]["peak"]["at"].startswith("2026-10-14")
    capfd.readouterr()
    assert run(["node", "node-0", *evening.options()]) == 0
    text = capfd.readouterr().out
    for part in (
        "node-0, the next 24 h: expected peak",
        " 23:00",
        "Wed 00:00",
        "upper bound (95 %)",
        "shop/Deployment/cart",
        "(besides pods)",
        "node-1",
        "→",
    ):
        assert part in text
    assert "nothing is moved" in text


def test_nodes_cost_what_the_settings_say_and_the_running_scorer_does_not_know(
    evening: Evening, url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    money = figures(capfd, "nodes", *evening.options())["money"]
    assert (money["nodes_with_price"], money["nodes_without_price"], money["nodes"]) == (0, 2, {})
    config = tmp_path / "settings.yaml"
    config.write_text('prices: {currency: EUR, list_prices: false, per_hour: {"pool!=web": 0.5}}')
    monkeypatch.setenv("FORECAST_SCHEDULER_CONFIG", str(config))
    money = figures(capfd, "nodes", *evening.options(), "--top", "1")["money"]
    assert money["per_month"] == 730 and money["sources"] == {"settings": 2}
    assert sum(one["per_month"] for one in money["nodes"].values()) == money["per_month"]
    assert run(["nodes", *evening.options()]) == 0
    text = capfd.readouterr().out
    assert "EUR a month" in text and "365.00" in text
    assert "money: 730 EUR a month for 2 nodes (estimate; 2 nodes by settings)" in text
    assert figures(capfd, "nodes", "--scorer", url)["money"] is None


def test_a_running_scorer_says_the_same(evening: Evening, url: str, capfd: pytest.CaptureFixture[str]) -> None:
    asked = (evening.options(), ["--scorer", url])
    here, there = (figures(capfd, "node", "node-0", *options) for options in asked)
    assert here.keys() == there.keys()
    for key in ("name", "peak_hours", "pods", "model_version"):
        assert here[key] == there[key]
    assert [one["service"] for one in here["services"]] == [one["service"] for one in there["services"]]
    assert here["largest"][0]["pod"] == there["largest"][0]["pod"]
    assert here["peak"]["expected"] == pytest.approx(there["peak"]["expected"], rel=1e-4)  # their clocks run on
    here, there = (figures(capfd, "nodes", *options) for options in asked)
    assert [node["name"] for node in here["nodes"]] == [node["name"] for node in there["nodes"]]
    plain = figures(capfd, "nodes", "--scorer", url, "--top", "1")
    assert len(plain["nodes"]) == 1 and plain["n_nodes"] == 2


def test_without_a_model_it_says_so(evening: Evening, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["nodes", *evening.options(models=False)]) == 0
    assert "there is no forecast" in capfd.readouterr().out
    assert run(["node", "node-0", *evening.options(models=False)]) == 0
    assert "no model has been published" in capfd.readouterr().out


def test_bad_input_is_one_sentence(evening: Evening, url: str, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["nodes", "--on", "tonight"], "is no day: write for instance"),
        (["nodes", "--scorer", f"http://127.0.0.1:{free_port()}"], "name a running scorer with --scorer URL"),
        (["nodes", "--scorer", url, "--cluster", "x.json"], "--scorer asks a running scorer"),
        (["nodes", "--ca", "x.pem"], "are for --scorer URL"),
        (["node", "node-7", "--scorer", url], "answered 404: node 'node-7' is not known; known are: node-0, node-1"),
        (["node", "node-7", *evening.options()], "node 'node-7' is not known"),
        (["node", "node-0", "--scorer", url, "--on", "2031-01-01"], "answered 422: there is no forecast of 2031-01-01"),
        (["nodes", *evening.options(), "--on", "2031-01-01"], "there is no forecast of 2031-01-01: name a day from"),
    ):
        capfd.readouterr()
        assert run(arguments) == 2, arguments
        assert words in said(capfd)
