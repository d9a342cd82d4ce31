"""One definition of hot, and one scale of colours, wherever the load of a node is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.style import Style

from base.errors import InputError
from base.html_report import html_report
from base.load_colours import FULL_COLOUR, HOT_COLOUR
from dashboards.alerting import files as alerting_files
from dashboards.alerting.rule_files import alert_groups
from dashboards.panels import files as dashboard_files
from forecast.hot_share import HOT_SHARE
from forecast_scheduler.reports.node_tables import _coloured
from forecast_scheduler.settings.document import Settings, load_settings
from rebalancer.planning.heat import ramp
from scorer.load_scale import FULL_SHARE, HIGHEST_SHARE, load_scale
from scorer.replay.replay_page import _scale
from scorer.service.app import create_app
from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import FakeScorer

ROOT = Path(__file__).parents[1]


def test_the_scale_rises_and_turns_where_a_node_is_hot_and_where_it_is_full() -> None:
    shares = [one.share for one in load_scale(HOT_SHARE)]
    assert shares == sorted(set(shares)) and shares[0] == 0.0
    by_share = {one.share: one for one in load_scale(HOT_SHARE)}
    assert by_share[HOT_SHARE].light == by_share[HOT_SHARE].dark == HOT_COLOUR
    assert by_share[FULL_SHARE].light == by_share[FULL_SHARE].dark == FULL_COLOUR


def test_the_page_is_given_the_scale() -> None:
    with AppClient(create_app(FakeScorer(), hot=HOT_SHARE)) as client:
        script = client.get("/heatmap.js").text
    (elements,) = re.findall(r"const SCALE = (\[.*?\]);", script)
    assert json.loads(elements) == [one._asdict() for one in load_scale(HOT_SHARE)]


def test_reports_have_it() -> None:
    assert [float(str(at)) * HIGHEST_SHARE for at, _ in _scale(HOT_SHARE)] == pytest.approx(
        [one.share for one in load_scale(HOT_SHARE)]
    )
    assert [colour for _, colour in _scale(HOT_SHARE)] == [one.light for one in load_scale(HOT_SHARE)]
    frame = html_report("base/html/page.html.j2", title="t")
    assert f"--hot: {HOT_COLOUR}; --full: {FULL_COLOUR};" in frame
    css = (ROOT / "forecast_scheduler" / "reports" / "peaks_report" / "peaks.css").read_text()
    assert ".bar.hot .mean { background: var(--hot); }" in css and ".bar.over .mean { background: var(--full); }" in css


@pytest.mark.parametrize(("share", "colour"), [(0.8, ""), (0.81, HOT_COLOUR), (1.0, HOT_COLOUR), (1.01, FULL_COLOUR)])
def test_the_terminal_has_it(share: float, colour: str) -> None:
    style = _coloured(share, HOT_SHARE).style
    assert Style.parse(str(style)) == Style.parse(colour)


def test_dashboards_and_alerts_have_it() -> None:
    peaks = (ROOT / "dashboards" / "grafana" / "peaks.json").read_text()
    steps = [one for one in re.findall(r'"steps": (\[.*?\])', peaks, re.DOTALL) if HOT_COLOUR in one]
    assert len(steps) >= 5
    for one in steps:
        marks = {step["color"]: step["value"] for step in json.loads(one)}
        assert marks[HOT_COLOUR] == HOT_SHARE and marks[FULL_COLOUR] == FULL_SHARE
    assert alert_groups() == alert_groups(HOT_SHARE)


def test_what_the_rebalancer_moves_for_and_what_loops_stay_below_is_the_same() -> None:
    assert ramp(HOT_SHARE) == ((0.7, 2.0), (HOT_SHARE, 6.0))
    assert Settings().schedule.colocation.ceiling == HOT_SHARE


@pytest.mark.parametrize("hot", [0.2, 0.6, 1.0])
def test_the_scale_turns_at_any_hot_share(hot: float) -> None:
    shares = [one.share for one in load_scale(hot)]
    assert shares == sorted(shares) and hot in shares and FULL_SHARE in shares


def test_limits_that_are_not_set_follow_the_hot_share(tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("hot_share: 0.6\nschedule: {job: {scheduler_name: a}}\n")
    settings = load_settings(config, {"FORECAST_SCHEDULER_REPLAY__DAYS": "3"})
    assert settings.schedule.colocation.ceiling == 0.6
    assert load_settings(config, {"FORECAST_SCHEDULER_HOT_SHARE": "0.5"}).schedule.colocation.ceiling == 0.5
    config.write_text("hot_share: 0.6\nschedule: {colocation: {ceiling: 0.7}}\n")
    assert load_settings(config, {}).schedule.colocation.ceiling == 0.7
    with pytest.raises(InputError, match="hot_share"):
        load_settings(None, {"FORECAST_SCHEDULER_HOT_SHARE": "2"})


def test_page_terminal_alerts_and_dashboards_follow_the_hot_share() -> None:
    with AppClient(create_app(FakeScorer(), hot=0.6)) as client:
        assert f'"share": 0.6, "light": "{HOT_COLOUR}"' in client.get("/heatmap.js").text
        assert "yellow hot above 60 % of capacity" in client.get("/").text
    assert Style.parse(str(_coloured(0.7, 0.6).style)) == Style.parse(HOT_COLOUR)
    alerts = alerting_files(hot=0.6)["prometheus/alerts.yaml"]
    assert "over 60% of capacity" in alerts and "> 0.6 and" in alerts and "0.8 and" not in alerts
    assert "> 0.6) or vector(0)" in dashboard_files(hot=0.6)["grafana/peaks.json"]
