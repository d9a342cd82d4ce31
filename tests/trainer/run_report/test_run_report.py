"""The report says what the arrays say, and no name can break its page."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from base.object_store import open_store
from forecast.backtest import backtest, scored_series
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_findings import ModelFinding
from forecast.resources import CPU, DISK, LOG, RESOURCES
from forecast.service_key import ServiceKey
from forecast.usage_limits import CutSeries
from testing.fitted_models import fitted
from tests.forecast.job_histories import HOUR, nights, with_runs
from tests.synthetic import synthetic_history
from trainer.amounts import amount
from trainer.gate.evidence import measured_peaks
from trainer.gate.gate_run import run_gate
from trainer.gate.gate_verdict import GateReport
from trainer.history.cleaning import CleaningCause, CleaningReport
from trainer.issued_forecasts import load_issued, store_issued
from trainer.run_report.earlier_nights import changes_between, score_issued
from trainer.run_report.learned import LearnedRuns, capacities_of, identified_load_share, learned_services
from trainer.run_report.report_of_run import RunReport, expected_slots, gap_slots, measured_share, run_report
from trainer.run_report.run_page import run_page

N_DAYS = 16
CREATED = datetime(2026, 5, 20, 2, tzinfo=UTC)
HOSTILE = ServiceKey("shop", "Deployment", '<img src=x onerror="alert(1)">&\u2028')


@lru_cache(maxsize=1)
def history() -> History:
    known = synthetic_history(n_days=N_DAYS, n_services=5)
    return replace(known, services=(HOSTILE, *known.services[1:]))


@lru_cache(maxsize=4)
def model_at(n_days: int) -> PeakModel:
    return fitted(history().before(n_days))


def made_report(folder: Path) -> RunReport:
    """The third night of a small cluster."""
    store = open_store(str(folder))
    before, model = model_at(N_DAYS - 2), model_at(N_DAYS)
    store_issued(store, before, "v1")
    return run_report(
        version="v2",
        created=CREATED,
        model=model,
        before=before,
        history=history(),
        issued=load_issued(store, history().days, after_the_fact=True),
        gate=run_gate(history(), before, lambda known, previous: model_at(known.n_days)),
        cleaning=CleaningReport({("usage <b>.parquet", CleaningCause.NEGATIVE): 3}),
        cut=[CutSeries(0, 1, LOG, 1_234, 56.78), CutSeries(2, 0, DISK, 2, np.inf)],
        recorded_share=0.75,
        stage_seconds={"read": 1.0, "fit": 2.5},
        findings=[ModelFinding("not reproduced", "cpu is <4> times what it was", "read on")],
        remarks=["no log collector"],
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return made_report(tmp_path_factory.mktemp("store"))


def test_the_json_report_is_plain_and_complete(report: RunReport) -> None:
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert document["version"] == "v2" and document["forecast_from"] == model_at(N_DAYS).first_day.isoformat()
    assert document["history"]["days"] == N_DAYS and document["history"]["recorded_share"] == 0.75
    assert document["history"]["measured_share"]["cpu"][history().days[0].isoformat()] == 1.0
    assert document["gate"]["resources"]["cpu"]["verdict"] == "passed"
    assert [night["day"] for night in document["issued"]] == [day.isoformat() for day in history().days[-2:]]
    assert len(document["services"]) == 5 and document["services"][0]["service"] == str(HOSTILE)
    assert document["changes"]["new"] == [] and document["stage_seconds"] == {"read": 1.0, "fit": 2.5}


def test_series_that_were_cut_are_named_in_json_page_and_metrics(report: RunReport) -> None:
    nodes, names = history().nodes, [str(service) for service in history().services]
    assert report.to_json()["history"]["cut"] == [
        {"service": names[0], "node": nodes[1], "resource": "log", "half_hours": 1_234, "largest_ratio": 56.8},
        {"service": names[2], "node": nodes[0], "resource": "disk", "half_hours": 2, "largest_ratio": None},
    ]
    page = run_page(report)
    section = page[page.index("Usage that was cut") : page.index("<h2>Durations")]
    for text in (escape(names[0]), nodes[1], "1,234", "56.8", names[2], "the node used nothing"):
        assert text in section, text
    assert report.figures(None).cut_series == {"cpu": 0, "memory": 0, "disk": 1, "network": 0, "log": 1}


def test_what_does_not_add_up_stands_in_json_page_and_metrics(report: RunReport) -> None:
    document = report.to_json()
    assert document["findings"] == [
        {"finding": "not reproduced", "what": "cpu is <4> times what it was", "what_to_do": "read on"}
    ]
    assert document["saving"] is None and "Nothing was promised yet" in run_page(report)
    assert document["remarks"] == ["no log collector"] and report.figures(None).findings == ("not reproduced",)
    page = run_page(report)
    section = page[page.index("What does not add up") : page.index("<h2>The gate")]
    for text in ("not reproduced", "cpu is &lt;4&gt; times", "read on", "no log collector"):
        assert text in section, text
    assert "What does not add up" not in run_page(replace(report, findings=(), remarks=()))


def test_figures_of_a_service_are_those_the_scorer_reads(report: RunReport) -> None:
    model = model_at(N_DAYS)
    cpu = report.services[2].resources["cpu"]
    expected = model.service_peaks(model.first_day)[2, CPU]
    assert (cpu.peak, cpu.bound) == pytest.approx(tuple(expected), rel=1e-4)
    assert cpu.mean == pytest.approx(float(model.usage((model.first_day,))[2, CPU].mean()), rel=1e-4)
    weights = dict(zip(model.info["predictors"], model.predictor_weights[2, CPU].tolist(), strict=True))
    assert cpu.predictors[0][0] == max(weights, key=lambda name: weights[name])
    assert report.services[2].replicas == 4 and not report.services[2].young
    assert cpu.peak_weight == pytest.approx(float(model.peak_weight[2, CPU].max()), rel=1e-4)


def test_a_service_of_three_days_is_young_and_unknown_figures_are_null() -> None:
    usage = history().usage_per_pod.copy()
    usage[1, :, :-3] = np.nan
    model = model_at(N_DAYS)
    unknown = {name: getattr(model, name).copy() for name in ("usage_dated", "usage_day_type", "peak_weight")}
    for array in unknown.values():
        array[1, LOG] = np.nan
    service = learned_services(replace(model, **unknown), replace(history(), usage_per_pod=usage))[1]
    assert service.young and service.measured_days == 3
    log = service.resources["log"]
    assert (log.mean, log.peak, log.bound, log.peak_weight, log.identified) == (None,) * 5


def test_runs_of_job_owners_are_named_and_counted(report: RunReport) -> None:
    assert report.job_owners == (0, 0) and all(service.runs is None for service in report.services)
    runs = nights(range(N_DAYS - 1, N_DAYS))
    known = with_runs(history(), 2, nights(range(N_DAYS)), owner=ServiceKey("shop", "CronJob", "nightly"))
    known = with_runs(known, 3, runs, owner=ServiceKey("shop", "CronJob", "endless"), open_=(0,))
    model = fitted(known)
    services = learned_services(model, known)
    assert services[2].runs == LearnedRuns(N_DAYS, 3 * HOUR, 3 * HOUR * (1 + 1 / N_DAYS), 1.0)
    assert services[3].runs == LearnedRuns(0, None, None, 1.0)
    changed = replace(report, services=services)
    assert changed.job_owners == (2, 1)
    document = json.loads(json.dumps(changed.to_json(), allow_nan=False))
    assert (document["history"]["job_owners"], document["history"]["job_owners_with_runs"]) == (2, 1)
    assert document["services"][2]["runs"]["median_seconds"] == 3 * HOUR
    page = run_page(changed)
    assert "1 of 2" in page and "job, runs 180 min" in page
    assert "Job owners" not in run_page(report)


def test_the_identified_share_is_weighed_by_load() -> None:
    model = model_at(N_DAYS)
    identified = np.zeros_like(model.identified)
    identified[4, CPU] = 1  # the service of level 5 among levels 1 to 5
    share = identified_load_share(replace(model, identified=identified))
    assert share["cpu"] == pytest.approx(5 / 15, abs=0.02) and share["memory"] == 0


def test_what_was_issued_is_scored_as_in_the_backtest(report: RunReport, tmp_path: Path) -> None:
    """Every night of a backtest stored and read back gives the backtest's own figures."""
    store = open_store(str(tmp_path))

    def stored(known: History, previous: PeakModel | None) -> PeakModel:
        model = model_at(known.n_days)
        store_issued(store, model, f"v{known.n_days}")
        return model

    expected = backtest(history(), stored).scores["cpu"]["forecast-scheduler"]
    nights = score_issued(history(), load_issued(store, history().days, after_the_fact=True))
    assert [night.lead_days for night in nights] == [1] * 5
    assert np.mean([night.scores["cpu"].coverage95 for night in nights]) == pytest.approx(expected.coverage95)
    used, scale = scored_series(history().usage_per_pod)
    assert used.all()
    total = (measured_peaks(history(), history().days[-5:])[:, CPU] / scale[:, [CPU]]).sum(axis=0)  # (n_nights,)
    loss = np.average([night.scores["cpu"].loss50 for night in nights], weights=total)
    assert loss == pytest.approx(expected.loss50, rel=1e-4)
    assert [night.lead_days for night in report.issued] == [1, 2]


def test_gaps_are_half_hours_of_services_that_had_pods() -> None:
    known = history()
    usage, replicas = known.usage_per_pod.copy(), known.replicas.copy()
    usage[0, CPU, -1, :12] = np.nan  # a gap
    replicas[1, -1] = 0  # no pods: nothing to measure
    usage[1, :, -1] = np.nan
    usage[:, LOG] = np.nan  # nobody measures it
    replicas[:, 3, 10:20] = np.nan  # the monitoring was down: pods went on
    usage[:, :, 3, 10:20] = np.nan
    broken = replace(known, usage_per_pod=usage, replicas=replicas)
    assert gap_slots(broken) == {"cpu": 12, "memory": 0, "disk": 0, "network": 0}
    assert expected_slots(broken) == dict.fromkeys(("cpu", "memory", "disk", "network"), 4 * 48)  # the fifth had none
    share = measured_share(broken)
    assert share[CPU, -1] == pytest.approx(1 - 12 / (4 * 48))
    assert share[CPU, 3] == pytest.approx(38 / 48) and share[CPU, 2] == 1 and share[LOG, 2] == 0
    gone = replace(broken, replicas=np.zeros_like(replicas))
    assert np.isnan(measured_share(gone)).all()


def test_only_moves_of_more_than_a_fifth_are_told_and_scaling_out_is_none() -> None:
    before = model_at(N_DAYS)
    usage = before.usage_dated.copy()
    usage[1, CPU] *= np.float32(1.3)
    usage[2, CPU] *= np.float32(0.75)
    usage[3, CPU] *= np.float32(1.1)
    usage[4] /= np.float32(2)
    replicas = before.reference_replicas.copy()
    replicas[4] *= 2
    replicas[0] = 0
    changes = changes_between(before, replace(before, usage_dated=usage, reference_replicas=replicas))
    assert changes is not None
    names = [(move.service.rpartition("/")[2], move.resource) for move in changes.moved]
    assert sorted(names) == [("service-1", "cpu"), ("service-2", "cpu")]
    assert abs(changes.moved[0].share_of_cluster) >= abs(changes.moved[1].share_of_cluster) > 0
    assert changes.gone == (str(HOSTILE),) and changes.new == ()
    assert changes_between(None, before) is None


class Page(HTMLParser):
    """Tags with their attributes, and the text outside scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self._in = "", dict[str, str](), ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts[str(self.tags[-1][1].get("id"))] = data
        elif self._in != "style":
            self.text += data


def test_the_page_needs_nothing_else_and_no_name_becomes_a_tag(report: RunReport) -> None:
    html = run_page(report)
    page = Page(html)
    assert html.count("plotly.js v") == 1
    for tag, attributes in page.tags:
        assert tag not in ("img", "link", "iframe") and not {"src", "href", "onerror"} & set(attributes), attributes
    rows = json.loads(page.scripts["services"])
    assert rows["rows"][0][0] == str(HOSTILE) and [name for name, _ in rows["resources"]] == [r.name for r in RESOURCES]
    assert "usage <b>.parquet: 3 values are negative" in page.text
    for sentence in ("published v2", "75% read through recording rules", "passed on 10 series-days"):
        assert sentence in page.text, sentence


def test_a_first_run_has_a_page_too() -> None:
    first = run_report(
        version="",
        created=CREATED,
        model=model_at(N_DAYS),
        before=None,
        history=history(),
        issued=load_issued(open_store("memory://none"), history().days),
        gate=GateReport(),
    )
    text = Page(run_page(first)).text
    for sentence in ("nothing was published", "There was no model before.", "No forecast has been issued yet"):
        assert sentence in text
    assert first.figures(None).finished is None and first.to_json()["changes"] is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.2345, "cores", "1.23 cores"),
        (3.5 * 2**30, "bytes", "3.5 GiB"),
        (1234.5, "cores", "1230 cores"),
        (1023, "bytes", "1020 B"),
        (0, "bytes", "0 B"),
        (12.3e6, "bytes/s", "12.3 MB/s"),
        (5e18, "bytes/s", "5e+06 TB/s"),
    ],
)
def test_amounts_are_written_as_people_do(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_tables_and_data_escape_what_is_in_them(report: RunReport) -> None:
    hostile = "</script><i>"
    learned = replace(report.services[0], service=hostile)
    page = run_page(replace(report, services=(learned,), stage_seconds={hostile: 1.0}))
    assert hostile not in page and "&lt;/script&gt;&lt;i&gt;" in page
    data = page.split('id="services">')[1].split("</script>")[0]
    assert "<" not in data and json.loads(data)["rows"][0][0] == hostile


def test_assumed_capacities_and_gaps_are_listed_in_lines_json_and_page(report: RunReport) -> None:
    assert report.capacities.lines() == [] and report.to_json()["capacities"] == {"assumed": [], "gaps": None}
    capacity = history().capacity.copy()
    capacity[:, [DISK, LOG]] = np.nan
    bare = replace(history(), capacity=capacity)
    model = fitted(bare)
    node_capacity, assumed = model.node_capacity.copy(), model.node_capacity_assumed.copy()
    node_capacity[:, LOG], assumed[:, LOG] = np.nan, 0
    found = capacities_of(replace(model, node_capacity=node_capacity, node_capacity_assumed=assumed), bare)
    (disk,) = found.assumed
    assert (disk.resource, disk.cpu_cores, disk.nodes) == ("disk", 40.0, 4)
    assert disk.capacity == pytest.approx(1.5 * disk.sustained)
    first, who_has_it, second = found.lines()
    assert first.startswith("capacity of disk assumed: it counts in scores and is no limit; 1.5 x what such nodes")
    assert "4 nodes of 40 cores" in first and "annotation forecast-scheduler.io/capacity" in who_has_it
    assert "log on all 4 nodes" in second and "prometheus.log_capacity" in second
    page = run_page(replace(report, capacities=found))
    assert "disk, nodes of 40 cores" in page and "(assumed)" in page and "log on all 4 nodes" in page


def test_nodes_like_a_known_one_are_no_gap() -> None:
    capacity = history().capacity.copy()
    capacity[1:, DISK] = np.nan
    bare = replace(history(), capacity=capacity)
    assert capacities_of(fitted(bare), bare).lines() == []


def test_a_service_that_limits_hold_back_is_marked(report: RunReport) -> None:
    model = model_at(N_DAYS)
    name = str(model.services[2])
    held = replace(model, info=model.info | {"hidden_demand": {name: [0.31, 1.2, 1, 2.0**30]}})
    services = learned_services(held, history())
    assert [bool(one.hidden_demand) for one in services[:4]] == [False, False, True, False]
    assert services[2].to_json()["hidden_demand"] == [
        "throttled in 31 % of its peak half hours: real demand is hidden, at least 1.2 cores per pod",
        "OOM-killed in 1 half hour at 1,024 MiB: it needs more memory than it had",
    ]
    assert "hidden demand" not in run_page(report)
    assert "hidden demand" in run_page(replace(report, services=services))
