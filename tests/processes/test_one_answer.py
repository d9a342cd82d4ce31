"""One answer to one question, on a live cluster: HTTP, metrics and commands print the same of one node."""

from __future__ import annotations

from datetime import datetime

import pytest

from scorer.highest_peak import clock
from scorer.load_scale import percent
from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ScorerProcess, settings_of
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually
from tests.forecast_scheduler.printed_peaks import figures, in_words, metric, row, said, text
from tests.processes.conftest import Started

Answers = dict[str, tuple[str, ...]]


def _as_it_is(scorer: ScorerProcess, node: str, capfd: pytest.CaptureFixture[str]) -> Answers:
    """What is said of a node as it is."""
    here = ["--scorer", scorer.url]
    listed = scorer.get("/v1/nodes")
    today = datetime.fromisoformat(listed["now"]).date()
    summary = next(one for one in listed["nodes"] if one["name"] == node)
    found = {"/v1/nodes": said(summary["peak"], today)}
    for path in ("/v1/nodes?sort=peak", "/v1/nodes?sort=peak&top=30"):
        one = next(one for one in scorer.get(path)["nodes"] if one["name"] == node)
        found[path] = said(one["peak"], today)
    found["/v1/nodes/{node}"] = said(scorer.get(f"/v1/nodes/{node}")["peak"], today)
    peak = next(one for one in figures(capfd, "nodes", *here, "--top", "30")["nodes"] if one["name"] == node)["peak"]
    found["nodes --json"] = said(peak, today)
    cells = row(text(capfd, "nodes", *here, "--top", "30"), node)
    found["nodes"] = cells[1], cells[3], cells[4], cells[2]
    found["node --json"] = said(figures(capfd, "node", node, *here)["peak"], today)
    found["node"] = in_words(text(capfd, "node", node, *here))
    resource = summary["today"]["resource"]
    labels = {"node": node, "resource": resource, "day": "today"}
    metrics = scorer.http.get("/metrics").text
    capacity = metric(metrics, "forecast_node_capacity", node=node, resource=resource)
    expected, bound = (
        percent(metric(metrics, "forecast_node_predicted_peak", **labels, quantile=q, as_of="now") / capacity)
        for q in ("0.5", "0.95")
    )
    seconds = metric(metrics, "forecast_node_predicted_peak_timestamp_seconds", **labels)
    at = datetime.fromtimestamp(seconds, datetime.fromisoformat(listed["now"]).tzinfo)
    of_today = said(summary["today"], today)
    # The metrics are of local days: they are asked about today beside the list's own figure of today.
    same = (expected, resource, clock(at, today), bound) == of_today
    found["/metrics, of today"] = found["/v1/nodes"] if same else (expected, resource, clock(at, today), bound)
    return found


def test_what_is_asked_on_a_live_cluster_gets_one_answer(
    start: Started,
    cluster: Scenery,
    writer: ClusterWriter,
    prometheus: PrometheusServer,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    scorer = start("--prometheus", prometheus.url, settings=settings_of(ladder={"fresh_usage": "60s"}))
    assert eventually(lambda: scorer.get("/v1/status")["level"] == 0)
    node, answers = cluster.nodes[0], dict[str, tuple[str, ...]]()

    def agree() -> bool:
        # Usage is measured anew between two questions: a figure may turn from one digit to the next meanwhile.
        answers.clear()
        answers.update(_as_it_is(scorer, node, capfd))
        return len(set(answers.values())) == 1

    assert eventually(agree), answers
    order = [one["name"] for one in scorer.get("/v1/nodes?sort=peak")["nodes"]]
    assert sorted(order) == sorted(cluster.nodes)
    made = writer.create(cluster.pod("one-answer"))
    reference = {"namespace": made["metadata"]["namespace"], "name": "one-answer"}
    assert eventually(lambda: scorer.http.post("/v1/explain", json={"pod": reference}).status_code == 200)

    def with_pod() -> tuple[str, ...]:
        asked = scorer.post("/v1/explain", {"pod": reference, "nodes": [node]})
        (one,) = asked["nodes"]
        today = datetime.fromisoformat(asked["now"]).date()
        answers["explain, without the pod"] = said(one["peak_before"], today)
        answers["/v1/nodes, without the pod"] = _as_it_is(scorer, node, capfd)["/v1/nodes"]
        return said(one["peak_with"], today)

    answers.clear()
    assert eventually(lambda: bool(with_pod()) and len(set(answers.values())) == 1), answers
    expected = with_pod()
    writer.bind("one-answer", node, namespace=reference["namespace"])
    assert eventually(lambda: _as_it_is(scorer, node, capfd)["nodes"] == expected), expected
    writer.delete(made)
