"""Which forecasts count: those issued first, then those made later, a rehearsal at last, and never what was learned."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from base.errors import InputError
from cluster.degradation import widening
from forecast.artefact import NoModel
from forecast.calendar import Calendar
from forecast.history import History
from forecast.hot_share import HOT_SHARE
from forecast.published_models import Registry
from forecast.resources import CPU
from forecast_scheduler.reports.peaks_report.origins import Origin
from forecast_scheduler.reports.peaks_report.peaks_figures import figures_json
from forecast_scheduler.reports.peaks_report.peaks_page import peaks_page
from forecast_scheduler.reports.peaks_report.peaks_view import PeaksView, peaks_view
from tests.forecast_scheduler.reports.peaks_report.nights import MADE, N_DAYS, history, model_at, registry_of, rehearsal


def view_of(registry: Registry, known: History | None = None, **options: Any) -> PeaksView:
    return peaks_view(known or history(), registry, made=MADE, **{"days": 5, "hot": HOT_SHARE, **options})


def origins_of(view: PeaksView) -> list[str]:
    return [forecast.origin.value for forecast in view.forecasts[:-1]]


def test_issued_forecasts_come_before_later_and_rehearsed_ones(tmp_path: Path) -> None:
    view = view_of(registry_of(tmp_path, in_time=(N_DAYS - 3,), late=(N_DAYS - 2, N_DAYS)))
    assert origins_of(view) == ["none", "none", "issued", "issued", "issued"]
    assert [forecast.lead_days for forecast in view.forecasts] == [0, 0, 1, 2, 3, 1]
    assert view.forecasts[4].widen == pytest.approx(widening(2))
    # The curves are those of the model that was issued, not of a later one.
    expected = model_at(N_DAYS - 3).usage((history().days[-1],))[:, CPU, 0] * 4
    drawn = view.services.expected[np.argsort(view.services.chosen), CPU, 4]
    assert drawn == pytest.approx(expected, rel=1e-4)
    assert np.isnan(view.nodes.expected[:, :, :2]).all() and np.isfinite(view.nodes.expected[:, CPU, 2:]).all()
    assert view.coming == history().days[-1] + timedelta(days=1) and np.isnan(view.nodes.actual[:, :, 5]).all()
    assert {score.day for score in view.service_scores} == set(history().days[-3:])
    view = view_of(registry_of(tmp_path / "later", late=(N_DAYS - 2, N_DAYS)), fit=rehearsal)
    assert origins_of(view) == ["none", "none", "none", "later", "later"]
    assert {score.day for score in view.service_scores} == set(history().days[-2:])
    registry = registry_of(tmp_path / "none")
    assert origins_of(view_of(registry)) == ["none"] * 5
    view = view_of(registry, fit=rehearsal)
    assert origins_of(view) == ["rehearsed"] * 5
    assert view.forecasts[0].version == "" and view.forecasts[0].cut_off == history().days[N_DAYS - 5]
    assert view.scores[history().days[-1]].coverage[CPU] > 0.3


def test_no_forecast_of_a_past_day_knows_that_day(tmp_path: Path) -> None:
    """Whatever came on the last days, what is shown as their forecast stays the same."""
    registry, known = registry_of(tmp_path, in_time=(N_DAYS - 2,)), history()
    usage, nodes = known.usage_per_pod.copy(), known.node_usage.copy()
    usage[:, :, -2:] *= 7
    nodes[:, :, -2:] *= 7
    changed = view_of(registry, replace(known, usage_per_pod=usage, node_usage=nodes))
    before = view_of(registry)
    assert (
        changed.nodes.expected[np.argsort(changed.nodes.chosen)][:, :, 3:5]
        == before.nodes.expected[np.argsort(before.nodes.chosen)][:, :, 3:5]
    ).all()
    assert changed.scores[known.days[-1]].coverage[CPU] == 0


def test_few_are_drawn_and_adoption_parts_the_days(tmp_path: Path) -> None:
    registry = registry_of(tmp_path, in_time=(N_DAYS - 2,))
    few, all_of_them = view_of(registry, top=1), view_of(registry)
    drawn = figures_json(few)["drawn"]
    assert drawn == {"nodes": 1, "services": 1, "nodes_left_out": 2, "services_left_out": 3}
    assert few.nodes.chosen[0] == few.hottest[0].node and len(few.hottest) == 3
    assert few.services.chosen.tolist() == [3]  # the largest
    assert figures_json(few)["days"] == figures_json(all_of_them)["days"]
    known = history()
    nodes = known.node_usage.copy()
    nodes[:, CPU, :10] *= np.array([0.2, 1.0, 1.8], dtype=np.float32)[:, None, None]
    view = view_of(registry_of(tmp_path / "none"), replace(known, node_usage=nodes), adopted=known.days[10])
    adoption = figures_json(view)["adoption"]
    assert (adoption["before"]["days"], adoption["after"]["days"]) == (10, N_DAYS - 11)
    assert adoption["before"]["peak_cv"]["cpu"] > adoption["after"]["peak_cv"]["cpu"] + 0.3
    json.dumps(figures_json(view))


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (replace(history(), nodes=("a", "b", "c"), services=()), "of one cluster"),
        (history().before(N_DAYS - 1), "name the --history that it was trained on"),
        (replace(history(), calendar=Calendar("Asia/Tokyo")), "set time_zone"),
    ],
    ids=["another cluster", "older history", "another time zone"],
)
def test_a_model_that_does_not_go_with_the_history_is_refused(known: History, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        view_of(registry_of(tmp_path), known)


def test_little_history_has_a_page_and_no_model_the_way_out(tmp_path: Path) -> None:
    short = history().before(2)
    url = str(tmp_path / "models")
    from forecast.model_artefact import artefact_of

    Registry(url).publish(artefact_of(model_at(2), MADE))
    view = view_of(Registry(url, clock=lambda: MADE), short, fit=rehearsal)
    assert [forecast.origin for forecast in view.forecasts] == [Origin.NONE, Origin.NONE, Origin.ISSUED]
    assert len(view.hottest) == 3 and not view.scores and not view.service_scores
    with pytest.raises(NoModel, match="run forecast-scheduler train"):
        view_of(Registry(str(tmp_path / "none"), clock=lambda: MADE))


def test_an_old_version_that_is_damaged_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = registry_of(tmp_path, in_time=(N_DAYS - 3, N_DAYS - 2))
    oldest = tmp_path / "models" / registry.versions()[0] / "node_z.npy"
    oldest.write_bytes(oldest.read_bytes()[:-4])
    view = view_of(registry)
    assert origins_of(view) == ["none", "none", "none", "issued", "issued"]
    assert "a version is left out" in caplog.text


def test_a_node_that_was_rebuilt_is_judged_and_drawn_by_what_it_had(tmp_path: Path) -> None:
    """Failed before: past days of a node that has half of it now were shares of that half."""
    registry, known = registry_of(tmp_path, in_time=(N_DAYS - 2,)), history()
    then = np.array(known.capacity_of_days)
    rebuilt = replace(known, capacity=known.capacity / 2, daily_capacity=then)
    plain, view = view_of(registry), view_of(registry, rebuilt)
    day = known.days[-1]
    np.testing.assert_allclose(view.scores[day].error, plain.scores[day].error)
    np.testing.assert_allclose(view.spread.hot, plain.spread.hot)
    assert view.hottest[0].share == pytest.approx(2 * plain.hottest[0].share), "the coming day is of what it has now"
    drawn, unchanged = (
        json.loads(re.findall(r'id="peaks">(.*?)</script>', peaks_page(one))[0])["node"] for one in (view, plain)
    )
    assert all(
        node["capacity_days"][CPU] == [*[2 * node["capacity"][CPU]] * 5, node["capacity"][CPU]] for node in drawn
    )
    assert not any("capacity_days" in node for node in unchanged)
