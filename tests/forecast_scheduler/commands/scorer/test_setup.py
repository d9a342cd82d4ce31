"""A scorer put together from settings and options."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from base.errors import InputError
from forecast.calendar import Calendar
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, clock_from, open_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import scorer_options
from scorer.options import ScorerOptions
from tests.scorer.live_cluster import model

BERLIN = Calendar("Europe/Berlin")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4"}}}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    return path


@pytest.mark.parametrize(
    ("settings", "hour"), [(Settings(), 15), (Settings(time_zone="America/New_York"), 21)], ids=["model", "settings"]
)
def test_a_moment_is_local_time_of_the_model_where_the_settings_name_no_zone(
    settings: Settings, hour: int, cluster: Path, tmp_path: Path
) -> None:
    url = str(tmp_path / "models")
    Registry(url).publish(artefact_of(replace(model(), calendar=BERLIN), datetime(2026, 6, 30, tzinfo=UTC)))
    with open_scorer(settings, Inputs(cluster=cluster, models=url, at=datetime(2026, 7, 1, 17))) as (scorer, _):
        assert scorer.status().now.astimezone(UTC).hour == hour


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (Inputs(at=datetime(2026, 7, 1)), "pass --cluster FILE"),
        (Inputs(history=Path("a")), "pass --cluster FILE"),
        (Inputs(cluster=Path("a"), history=Path("b"), prometheus="http://c"), "pass one of them"),
    ],
)
def test_contradicting_inputs_are_refused(inputs: Inputs, message: str) -> None:
    with pytest.raises(InputError, match=message), open_scorer(Settings(), inputs):
        pass


def test_the_settings_are_the_defaults_and_a_moment_is_local_time() -> None:
    settings = Settings()
    assert scorer_options(settings) == ScorerOptions()
    assert settings.scorer.serving.port == 8080
    assert settings.scorer.serving.max_concurrent == 256
    naive = datetime(2026, 7, 1, 17, 0)
    for at in (naive, naive.replace(tzinfo=timezone(timedelta(hours=2))), datetime(2026, 7, 1, 15, tzinfo=UTC)):
        clock = clock_from(at, BERLIN)
        first = clock()
        assert first == pytest.approx(datetime(2026, 7, 1, 15, tzinfo=UTC).timestamp(), abs=60)
        assert clock() >= first
    assert clock_from(None, BERLIN) is time.time


def test_settings_reach_the_scorer() -> None:
    settings = Settings.model_validate(
        {
            "prometheus": {"step": "1m", "disk_capacity": 7e8, "log_capacity": 2e6},
            "scorer": {
                "usage_every": "5s",
                "scores": {
                    "weights": {"qos_balance": 1},
                    "shape": {100: 0, 0: 10},
                    "water_levels": {"lower": 0.1, "upper": 0.2},
                },
            },
        }
    )
    options = scorer_options(settings)
    assert (options.usage_window, options.usage_every) == (60, 5)
    assert options.scores.weights == {"qos_balance": 1}
    assert options.scores.shape == ((0, 10), (100, 0))
    assert options.scores.water_levels.upper == 0.2
    assert options.capacities == {"disk": 7e8, "log": 2e6}
