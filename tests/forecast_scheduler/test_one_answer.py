"""One answer to one question: whatever says what the load of a node will be says it to the same printed digit."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from admission.templates.shaped_pods import _peaks
from advisor.advice_requests import advice_note
from forecast.hot_share import HOT_SHARE
from forecast_scheduler.commands.command_options import parse_moment
from forecast_scheduler.commands.live_placing import Placing
from forecast_scheduler.commands.node_reports import LocalNodeReports, local_node_reports
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import schedule_policy
from kube.client.cluster_access import CURRENT_CLUSTER
from placement.decisions.decision import Binding, decision_of, note_of
from scheduler.cycle.decisions import NodeChoice
from scheduler.decision_advice import advice_of_cycle
from scorer.answers import Peak
from scorer.highest_peak import clock, peak_words
from scorer.load_scale import percent
from scorer.scorer import Scorer
from scorer.service.app import create_app
from testing.app_client import AppClient
from tests.forecast_scheduler.made_cluster import DOMAIN, cluster_file
from tests.forecast_scheduler.printed_peaks import figures, in_words, metric, row, said, text
from tests.forecast_scheduler.recorded_evening import MOMENT, Evening, recorded_evening
from tests.forecast_scheduler.test_same_node import owned

NODE, POD = "node-0", "new"
TODAY = datetime.fromisoformat(MOMENT).date()

Answers = dict[str, tuple[str, ...]]


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    """The recorded evening, and a pod that waits."""
    folder = tmp_path_factory.mktemp("evening")
    made = recorded_evening(folder)
    items = json.loads(made.cluster.read_text())["items"]
    for item in items:
        if item["kind"] == "Node":
            item["metadata"].setdefault("labels", {})[DOMAIN] = "forecast-scheduler"
    return Evening(cluster_file(folder, *items, owned(POD, "search", cpu="500m")), made.models, made.history)


def of_terminal(capfd: pytest.CaptureFixture[str], options: list[str]) -> Answers:
    """What the commands say of the node as it is."""
    found: Answers = {}
    for command in (["nodes"], ["node", NODE], ["nodes", "--on", TODAY.isoformat()]):
        made = figures(capfd, *command, *options)
        node = next(one for one in made["nodes"] if one["name"] == NODE) if "nodes" in made else made
        found[f"{' '.join(command)} --json"] = said(node["peak"], TODAY)
    cells = row(text(capfd, "nodes", *options), NODE)
    found["nodes"] = cells[1], cells[3], cells[4], cells[2]
    shown = text(capfd, "node", NODE, *options)
    found["node, its title"] = in_words(shown)
    share, _, at, _ = found["node, its title"]
    hour = row(shown, f"{at[:-2]}00")
    found["node, the row of the hour"] = share, found["nodes"][1], at, hour[3]
    assert hour[2] == share
    told = next(one for one in figures(capfd, "explain", f"shop/{POD}", *options)["nodes"] if one["node"] == NODE)
    found["explain --json, without the pod"] = said(told["peak_before"], TODAY)
    cells = row(text(capfd, "explain", f"shop/{POD}", *options, "--top", "2"), NODE)
    (change,) = [cell for cell in cells[4:5] if "->" in cell]
    assert change.split(" -> ")[0] == share.removesuffix(" %"), change
    found["explain, without the pod"] = share, *found["nodes"][1:]
    return found


def of_service(scorer: Scorer, resource: str) -> Answers:
    """What the HTTP service, its metrics and what else reads the tables say of the node as it is."""
    found: Answers = {}
    with AppClient(create_app(scorer, hot=HOT_SHARE)) as client:
        for path in ("/v1/nodes", "/v1/nodes?sort=peak&top=10", f"/v1/nodes?sort=peak&on={TODAY}"):
            node = next(one for one in client.get(path).json()["nodes"] if one["name"] == NODE)
            found[path] = said(node["peak"], TODAY)
            found[f"{path}, today"] = said(node["today"], TODAY)
        found["/v1/nodes/{node}"] = said(client.get(f"/v1/nodes/{NODE}").json()["peak"], TODAY)
        curves = client.get(f"/v1/nodes/{NODE}/forecast").json()
        curve = next(one for one in curves["curves"] if one["resource"] == resource)
        day = next(one for one in curve["days"] if one["day"] == TODAY.isoformat())
        at = curves["starts"].index(day["at"])
        of_day = Peak(
            resource,
            curve["unit"],
            day["expected"],
            day["bound"],
            curve["capacity"],
            day["expected"] / curve["capacity"],
            datetime.fromisoformat(day["at"]),
        )
        found["/v1/nodes/{node}/forecast, its day"] = said(of_day, TODAY)
        of_day = Peak(
            **{
                **{name: getattr(of_day, name) for name in Peak.__struct_fields__},
                "share": curve["expected"][at] / curve["capacity"],
            }
        )
        found["/v1/nodes/{node}/forecast, its curve"] = said(of_day, TODAY)
        heat = client.get("/v1/heat-map").json()
        hours = heat["share"][heat["nodes"].index(NODE)][17:41]
        found["/v1/heat-map"] = percent(max(hours)), *said(of_day, TODAY)[1:]
        explained = client.post("/v1/explain", json={"pod": {"namespace": "shop", "name": POD}}).json()
        before = next(one["peak_before"] for one in explained["nodes"] if one["node"] == NODE)
        found["/v1/explain, without the pod"] = said(before, TODAY)
        metrics = client.get("/metrics").text
    labels = {"node": NODE, "resource": resource}
    capacity = metric(metrics, "forecast_node_capacity", **labels)
    expected, bound = (
        metric(metrics, "forecast_node_predicted_peak", **labels, quantile=q, day="today", as_of="now") / capacity
        for q in ("0.5", "0.95")
    )
    at_seconds = metric(metrics, "forecast_node_predicted_peak_timestamp_seconds", **labels, day="today")
    moment = datetime.fromtimestamp(at_seconds, scorer.tables.now().tzinfo)
    found["/metrics"] = percent(expected), resource, clock(moment, TODAY), percent(bound)
    with scorer.tables.reading() as cluster:
        number = cluster.state.row_of[NODE]
    found["effects of templates"] = percent(float(_peaks(scorer, [number])[0])), *found["/metrics"][1:]
    return found


def with_the_pod(scorer: Scorer, capfd: pytest.CaptureFixture[str], options: list[str]) -> tuple[str, Answers]:
    """The node that the pod gets, and what is said of it with the pod."""
    found: Answers = {}
    (planned,) = figures(capfd, "schedule", "--dry-run", *options)["pods"]
    node = str(planned["node"])
    told = next(one for one in figures(capfd, "explain", f"shop/{POD}", *options)["nodes"] if one["node"] == node)
    found["explain --json"] = said(told["peak_with"], TODAY)
    words = found["explain --json"]
    cells = row(text(capfd, "explain", f"shop/{POD}", *options, "--top", "2"), node)
    found["explain"] = cells[4].partition(" -> ")[2].rpartition(" ")[0], *words[1:]
    found["explain, its remarks"] = words[0], words[1], cells[6].partition(": ")[0], words[3]
    assert f"upper bound (95 %) {words[3]}".split()[0] in cells[6]
    found["schedule --dry-run --json"] = percent(planned["peak_share"]), *words[1:]
    found["schedule --dry-run"] = row(text(capfd, "schedule", "--dry-run", *options), f"shop/{POD}")[3], *words[1:]
    pod = scorer.find_pod("shop", POD)
    policy = schedule_policy(Settings())
    best = Placing(scorer, Settings()).best_node(pod, policy, rather=node)
    if best.node == node:
        found["policy"] = percent(best.peak_share), *words[1:]
    with scorer.tables.changing() as cluster:
        cluster.assume(pod, node, cluster.now + 60)
        choice = {pod.uid: NodeChoice(policy, cluster.state.row_of[node], 2, 10.0, None)}
        (advice,) = advice_of_cycle(
            scorer.tables,
            cluster,
            [pod],
            choice,
            because=lambda pod: "",
            at=scorer.tables.now().timestamp(),
            seconds=0.1,
        )
    decision = decision_of(Binding(advice, node, advice.at, "1"))
    found["event"] = in_words(note_of(decision))
    found["decision log"] = said(decision.to_json()["expected_peak"], TODAY)
    note = json.loads(advice_note(advice))["expected_peak"]
    found["annotation"] = (
        percent(note["share"]),
        note["resource"],
        clock(datetime.fromisoformat(note["at"]), TODAY),
        percent(note["upper_bound"]),
    )
    found["asked again, where the pod is assumed to be"] = said(scorer.expected_peak(pod, node), TODAY)
    summary = next(one for one in scorer.nodes().nodes if one.name == node)
    found["nodes, where the pod is assumed to be"] = said(summary.peak, TODAY)
    found["in words"] = in_words(peak_words(summary.peak, TODAY)) if summary.peak else ()
    return node, found


def test_thirty_questions_get_one_answer(
    evening: Evening, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    options = evening.options()
    found = of_terminal(capfd, options)
    inputs = Inputs(evening.cluster, CURRENT_CLUSTER, str(evening.models), None, evening.history, parse_moment(MOMENT))
    with local_node_reports(Settings(), inputs) as reports:
        assert isinstance(reports, LocalNodeReports)
        scorer = reports.scorer
        resource = found["nodes"][1]
        found |= of_service(scorer, resource)
        order = [one.name for one in scorer.nodes(by_peak=True).nodes]
        assert (
            order
            == list(scorer.heat_map().nodes)
            == [one["name"] for one in figures(capfd, "nodes", *options)["nodes"]]
        )
        node, placed = with_the_pod(scorer, capfd, options)
    assert set(found.values()) == {found["nodes"]}, found
    assert set(placed.values()) == {placed["event"]}, (node, placed)

    assert len(found) + len(placed) >= 30
