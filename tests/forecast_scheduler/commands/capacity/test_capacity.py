"""`capacity` on a small history: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoscaling.prices.node_prices import shape_name
from base.object_store import open_store
from forecast_scheduler.cli import run
from tests.forecast_scheduler.small_history import LEVELS, small_tables
from trainer.promised_saving import last_promise

RULES = ["native", "live", "last_week", "forecast", "oracle"]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(small_tables(9).write(tmp_path_factory.mktemp("capacity") / "history"))


def test_the_fewest_nodes_by_rule_as_table_json_and_page(
    history: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "capacity.json", tmp_path / "capacity.html"
    command = ["capacity", "--history", history, "--target", "0.001", "--seed", "2", "--days", "1"]
    group = shape_name(*(16.0 * level for level in LEVELS[:2]))
    given = ["--price", f"{group}=0.5", "--promise", str(tmp_path / "models")]
    assert run([*command, *given, "--lose-nodes", "1", "--json", str(file), "--report", str(page)]) == 0
    figures = json.loads(file.read_text())
    promise = last_promise(open_store(str(tmp_path / "models")))
    assert promise is not None and promise.nodes == figures["nodes"]["forecast"]
    assert promise.saved_per_month == (2 - promise.nodes) * 365 == figures["money"]["saved_per_month"]["forecast"]
    assert list(figures["nodes"]) == RULES
    assert all(isinstance(nodes, int) and nodes >= 1 for nodes in figures["nodes"].values())
    assert (figures["target"], figures["recorded"], figures["seed"]) == (0.001, 2, 2)
    assert all(one["hot_share"] <= 0.001 for one in figures["rules"].values())
    assert all(figures["reserve"]["nodes"][rule] > figures["nodes"][rule] for rule in RULES)
    assert len(figures["by_hour"]["forecast"]) == len(figures["by_hour"]["oracle"]) == 24
    said = capfd.readouterr().out
    assert "Fewest nodes with at most 0.10 %" in said and "1 nodes lost" not in said
    assert "money: 730 USD a month for 2 nodes (estimate; 2 nodes by --price)" in said
    assert str(page.resolve()) in said
    assert "<!doctype html>" in page.read_text().lower()


def test_the_coming_days_are_searched_like_recorded_ones_and_replay_gives_the_number(
    history: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["capacity", "--history", history, "--json"]  # nine days of history leave one to play
    assert run([*command, str(tmp_path / "recorded.json")]) == 0
    assert run([*command, str(tmp_path / "coming.json"), "--coming"]) == 0
    said = capfd.readouterr().out
    assert (
        said.count("a first guess: 1 day is played, after 7 to learn from. 15 whole days of history have a week") == 1
    )
    assert said.count("a first guess: 6 days are played, after 9 to learn from.") == 1
    recorded, coming = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("recorded", "coming"))
    assert list(coming["nodes"]) == RULES and all(coming["nodes"].values())
    assert coming["window"]["first_day"] > recorded["window"]["first_day"]
    file = tmp_path / "replay.json"
    assert run(["replay", "--history", history, "--days", "1", "--capacity", "--json", str(file)]) == 0
    assert list(json.loads(file.read_text())["capacity"]["nodes"]) == ["native", "forecast", "oracle"]
    assert "Fewest nodes with at most" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lose-nodes", "1", "--lose-zone", "3"], "choose one"),
        (["--coming", "--at", "2026-01-20 04:00"], "leave --at out"),
        (["--price", "8 cores"], "is no price: write GROUP=PRICE"),
        (["--price", "=-1"], "is no price"),
        (["--price", "large=0.4", "--days", "1"], "no node group 'large' in the window: choose '"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_work(
    history: str, options: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["capacity", "--history", history, *options]) == 2
    assert said in capfd.readouterr().err
    assert run(["replay", "--history", history, "--trajectory", "--capacity"]) == 2
    assert "leave it out" in capfd.readouterr().err
