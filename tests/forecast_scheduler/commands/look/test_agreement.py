"""`look` has the figures of the commands that it stands for, to the last digit."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from base.progress import silent
from forecast.published_models import Registry
from forecast_scheduler.cli import run
from forecast_scheduler.commands.look.answers import figures_of
from forecast_scheduler.commands.look.figures import NextStep
from forecast_scheduler.commands.look.learning import Learned
from forecast_scheduler.commands.look.parts import LookParts
from forecast_scheduler.commands.look.screen import screen
from forecast_scheduler.commands.node_prices import read_price_sources
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.commands.train_night import train_night
from forecast_scheduler.settings.document import ModelsSettings, Settings
from tests.forecast_scheduler.recorded_evening import MOMENT, Evening, recorded_evening

_BY_THE_SECOND = ("measured_seconds_ago", "made_at", "now")


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("look"))


@pytest.fixture(scope="module")
def known(evening: Evening, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    """What the recorded days teach."""
    models = str(tmp_path_factory.mktemp("models"))
    settings = Settings(models=ModelsSettings(location=models))
    trained = train_night(
        settings,
        Registry(models),
        history=str(evening.history),
        store=None,
        force=False,
        now=datetime.now(UTC),
        progress=silent,
    )
    return Learned(settings, trained, models)


def document(known: Learned, cluster: Path) -> dict[str, Any]:
    """A look at a cluster file in that evening."""
    return figures_of(
        known,
        Inputs(cluster, at=datetime.fromisoformat(MOMENT)),  # what is measured changes by the second
        cluster="evening",
        store="recorded",
        following=(NextStep("nightly", "train"),),
        prices=read_price_sources(known.settings.prices),
        now=datetime.now(UTC),
        parts=LookParts(silent),
    ).to_json()


@pytest.fixture(scope="module")
def seen(known: Learned, evening: Evening) -> dict[str, Any]:
    return document(known, evening.cluster)


def written(line: list[str], file: Path) -> dict[str, Any]:
    """What a command writes with --json."""
    assert run([*line, "--json", str(file)]) == 0
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def steady(value: Any) -> Any:
    """The same without what changes with every second."""
    if isinstance(value, dict):
        return {name: steady(inner) for name, inner in value.items() if name not in _BY_THE_SECOND}
    if isinstance(value, list | tuple):
        return [steady(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def as_json(value: Any) -> Any:
    return steady(json.loads(json.dumps(value)))


def test_nodes_and_what_makes_their_peaks(seen: dict[str, Any], evening: Evening, tmp_path: Path) -> None:
    nodes = as_json(written(["nodes", *evening.options(history=False)], tmp_path / "nodes.json"))["nodes"]
    assert [{name: one[name] for name in nodes[0]} for one in as_json(seen["tonight"]["nodes"])] == nodes
    first = seen["tonight"]["nodes"][0]
    node = as_json(written(["node", first["name"], *evening.options(history=False)], tmp_path / "node.json"))
    assert as_json(first["services"]) == node["services"] and first["besides_pods"] == node["besides_pods"]
    hottest = seen["week"]["nodes"][0]
    of_day = as_json(written(["nodes", "--on", hottest["day"], *evening.options(history=False)], tmp_path / "day"))[
        "nodes"
    ][0]
    assert {name: as_json(hottest)[name] for name in of_day} == of_day


def test_moves(seen: dict[str, Any], evening: Evening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORECAST_SCHEDULER_REBALANCE__BUDGET__MOST", "7")
    moves = as_json(written(["rebalance", "--plan", *evening.options(history=False)], tmp_path / "plan.json"))
    assert as_json(seen["moves"]) == {"most": 7} | moves


def test_requests(seen: dict[str, Any], evening: Evening, tmp_path: Path) -> None:
    line = ["requests", *evening.options(history=False)]
    assert as_json(seen["requests"]) == as_json(written(line, tmp_path / "requests.json"))


def test_recorded_days(seen: dict[str, Any], evening: Evening, tmp_path: Path) -> None:
    history = ["--history", str(evening.history)]
    assert as_json(seen["capacity"]) == as_json(written(["capacity", *history], tmp_path / "capacity.json"))
    assert as_json(seen["doctor"]) == as_json(written(["doctor", *history], tmp_path / "doctor.json"))
    replay = written(["replay", *history], tmp_path / "replay.json")
    assert as_json(seen["placing"]["rules"]) == {name: replay["rules"][name] for name in seen["placing"]["rules"]}
    assert as_json(seen["placing"]["gap_closed"]) == replay["gap_closed"]
    assert not seen["not_computed"]


def test_a_cluster_without_pods_has_no_moves_and_stops_nothing(
    known: Learned, evening: Evening, tmp_path: Path
) -> None:
    objects = json.loads(evening.cluster.read_text())
    objects["items"] = [one for one in objects["items"] if one["kind"] == "Node"]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(objects))
    found = document(known, file)
    assert found["not_computed"] == {} and found["moves"]["moves"] == [] and found["nodes"]["n_pods"] == 0
    assert not found["tonight"]["nodes"][0]["services"]
    assert list(screen(found))
