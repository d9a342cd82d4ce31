"""An explanation as people read it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from rich.console import Console

from cluster.degradation import Level
from forecast_scheduler.commands.explain.tables import explanation_tables, remarks
from forecast_scheduler.reports.table_format import amount
from scorer.answers import ExplainedNode, ExplainedScore, Explanation, Peak, summary_of
from scorer.judgement import Judgement, SumPart

PEAK = Peak("cpu", "cores", 21.0, 24.0, 40.0, 0.525, datetime(2026, 5, 19, 20, tzinfo=UTC))
NODE = ExplainedNode(
    "node-1",
    71.25,
    (ExplainedScore("predicted_peak", 71.25, 1.0, 71.25),),
    Level.FRESH,
    12.0,
    replace(PEAK, share=0.45),
    PEAK,
    ("it runs here",),
    week_before=PEAK,
    week_with=PEAK,
    rank=3,
)
EXPLANATION = Explanation(
    pod="shop/cart-1",
    service="shop/Deployment/cart",
    now=datetime(2026, 5, 19, 12, tzinfo=UTC),
    service_known=True,
    nodes=(NODE, replace(NODE, node="node-2", score=60.0, peak_before=None, peak_with=None)),
    n_nodes=7,
    runner_up="node-2",
    margin=11.25,
    level=Level.FRESH,
    reasons=(),
    model_version="v7",
    model_age_seconds=7300.0,
    metrics_age_seconds=12.0,
    virtual_request={"cpu": 0.5, "memory": 2.0**30, "network": 2e7},
    virtual_request_source="profile of the service at this hour",
)


def shown(explanation: Explanation) -> str:
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        for table in explanation_tables(explanation):
            console.print(table)
    return console.export_text()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.213, "cores", "4.21 cores"),
        (12.3 * 2**30, "bytes", "12.3 GiB"),
        (3 * 2.0**40, "bytes", "3.0 TiB"),
        (100.0, "bytes", "100 B"),
        (2.04e7, "bytes/s", "20.4 MB/s"),
        (1500.0, "bytes/s", "1.5 kB/s"),
        (0.0, "bytes/s", "0 B/s"),
        (-2e9, "bytes/s", "-2.0 GB/s"),
    ],
)
def test_amounts_are_in_units_people_use(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_remarks_tell_margin_age_level_and_virtual_request() -> None:
    lines = remarks(EXPLANATION)
    assert lines == [
        "runner-up: node-2, 11.25 points behind",
        "model v7, whose first day began 2 h ago; usage measured 12 s ago",
        "degradation level 0 (fresh)",
        "virtual request (profile of the service at this hour): cpu 0.50 cores, memory 1.0 GiB, network 20.0 MB/s",
    ]
    worse = replace(
        EXPLANATION, margin=None, runner_up=None, model_version=None, model_age_seconds=None, metrics_age_seconds=None,
        level=Level.REQUESTS, reasons=("no model has been published",), service_known=False,
    )  # fmt: skip
    assert remarks(worse)[:4] == [
        "no model; usage not measured",
        "degradation level 3 (requests)",
        "  no model has been published",
        "the model does not know this service: predicted from its requests",
    ]


def test_several_contributions_markup_and_assumed_capacities_are_shown() -> None:
    parts = (ExplainedScore("predicted_peak", 80.0, 3.0, 60.0), ExplainedScore("qos_balance", 50.0, 1.0, 12.5))
    text = shown(replace(EXPLANATION, nodes=(replace(NODE, contributions=parts),)))
    assert "qos_balance x 1" in text
    assert "12.5 (50)" in text
    assert "a/[/b] (x) on 7 nodes" in shown(replace(EXPLANATION, pod="a/[/b]", service="x"))
    assert shown(replace(EXPLANATION, nodes=(replace(NODE, node="[/n]"),)))
    tight = replace(PEAK, resource="log", unit="bytes/s", expected=2e6, assumed=True)
    explanation = replace(
        EXPLANATION, nodes=(replace(NODE, peak_before=tight, peak_with=tight),), assumed_capacities=("disk", "log")
    )
    assert "53 -> 53 % of assumed log" in shown(explanation)
    (line,) = [line for line in remarks(explanation) if "assumed" in line]
    assert line.startswith("capacity of disk, log assumed")
    assert "assumed" not in shown(EXPLANATION) + "".join(remarks(EXPLANATION))


def test_peaks_are_named_with_their_hours_and_times_of_other_days_with_their_day() -> None:
    text = shown(EXPLANATION)
    for words in (
        "expected peak, next 24 h",
        "expected peak, week",
        "45 -> 53 % cpu",
        "20:00: 21.00 cores, upper bound",
    ):
        assert words in text
    assert "Tue 20:00" not in text
    assert "Tue 20:00: 21.00 cores" in shown(replace(EXPLANATION, now=datetime(2026, 5, 18, 21, tzinfo=UTC)))


def test_a_table_shows_what_each_score_adds_with_its_weight() -> None:
    parts = (
        SumPart("ImageLocality", 7, {"node-1": 0.0, "node-2": 140.0}),
        SumPart("ForecastScheduler", 0.5, {"node-1": 250.0, "node-2": 90.5}),
    )
    totals = {"node-1": 250.0, "node-2": 230.5}
    judged = Judgement("profile online", ("node-1", "node-2"), totals, parts)
    explained = (replace(NODE, node="node-1"), replace(NODE, node="node-2"))
    text = shown(replace(EXPLANATION, nodes=explained, judgement=summary_of(judged, explained)))
    assert "What each score adds to the sum" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["│", "ImageLocality", "x", "7", "│", "0.0", "│", "140.0", "│"] in lines
    assert ["│", "ForecastScheduler", "x", "0.5", "│", "250.0", "│", "90.5", "│"] in lines
