"""One definition of hot, and one scale of colours, wherever the load of a node is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.style import Style

from base.html_report import html_report
from base.load_colours import FULL_COLOUR, HOT_COLOUR
from dashboards.alerting.forecast_alerts import _HOT
from forecast.resources import HOT_SHARE
from forecast_scheduler.reports.node_tables import _coloured
from forecast_scheduler.settings.document import Settings
from rebalancer.planning.heat import RAMP
from scorer.load_scale import FULL_SHARE, LOAD_SCALE
from scorer.replay.replay_page import _SCALE
from scorer.service.app import create_app
from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import FakeScorer

ROOT = Path(__file__).parents[1]


def test_the_scale_rises_and_turns_where_a_node_is_hot_and_where_it_is_full() -> None:
    shares = [one.share for one in LOAD_SCALE]
    assert shares == sorted(set(shares)) and shares[0] == 0.0
    by_share = {one.share: one for one in LOAD_SCALE}
    assert by_share[HOT_SHARE].light == by_share[HOT_SHARE].dark == HOT_COLOUR
    assert by_share[FULL_SHARE].light == by_share[FULL_SHARE].dark == FULL_COLOUR


def test_the_page_is_given_the_scale() -> None:
    with AppClient(create_app(FakeScorer())) as client:
        script = client.get("/heatmap.js").text
    (elements,) = re.findall(r"const SCALE = (\[.*?\]);", script)
    assert json.loads(elements) == [one._asdict() for one in LOAD_SCALE]


def test_reports_have_it() -> None:
    assert [float(str(at)) * LOAD_SCALE[-1].share for at, _ in _SCALE] == pytest.approx(
        [one.share for one in LOAD_SCALE]
    )
    assert [colour for _, colour in _SCALE] == [one.light for one in LOAD_SCALE]
    frame = html_report("base/html/page.html.j2", title="t", plotly="")
    assert f"--hot: {HOT_COLOUR}; --full: {FULL_COLOUR};" in frame
    css = (ROOT / "forecast_scheduler" / "reports" / "peaks_report" / "peaks.css").read_text()
    assert ".bar.hot .mean { background: var(--hot); }" in css and ".bar.over .mean { background: var(--full); }" in css


@pytest.mark.parametrize(("share", "colour"), [(0.8, ""), (0.81, HOT_COLOUR), (1.0, HOT_COLOUR), (1.01, FULL_COLOUR)])
def test_the_terminal_has_it(share: float, colour: str) -> None:
    style = _coloured(share).style
    assert Style.parse(str(style)) == Style.parse(colour)


def test_dashboards_and_alerts_have_it() -> None:
    peaks = (ROOT / "dashboards" / "grafana" / "peaks.json").read_text()
    steps = [one for one in re.findall(r'"steps": (\[.*?\])', peaks, re.DOTALL) if HOT_COLOUR in one]
    assert len(steps) >= 5
    for one in steps:
        marks = {step["color"]: step["value"] for step in json.loads(one)}
        assert marks[HOT_COLOUR] == HOT_SHARE and marks[FULL_COLOUR] == FULL_SHARE
    assert _HOT == HOT_SHARE


def test_what_the_rebalancer_moves_for_and_what_loops_stay_below_is_the_same() -> None:
    assert RAMP[-1][0] == HOT_SHARE
    schedule = Settings().schedule
    ceilings = schedule.colocation.ceiling, schedule.gpu.idle_cpu.ceiling, schedule.job.ceiling
    assert set(ceilings) == {HOT_SHARE}
