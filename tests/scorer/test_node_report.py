"""What makes the peak of a node, and where its largest pods would be better off."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from base.errors import InputError, UnknownName
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from scorer.answers import NodeReport, Peak
from tests.scorer.live_cluster import N_RESOURCES, at, model, node, pod_of
from tests.scorer.scorer_at import LiveScorer
from tests.scorer.test_shadow import believing

ALONE = pod_of(1, "alone", "node-0", started=at(0))
PODS = [
    *(pod_of(5, f"replica-{i}", "node-0", started=at(0)) for i in range(3)),
    ALONE,
    pod_of(5, "elsewhere", "node-1", started=at(0)),
]


def _scorer(*pods: PodInfo) -> LiveScorer:
    made = LiveScorer(12.0, pods=[*PODS, *pods])
    made.measure_as_expected()
    made.scorer.tables.refresh_overview()
    return made


@pytest.fixture
def tested() -> LiveScorer:
    return _scorer()


def _peak_of(tested: LiveScorer, name: str) -> Peak:
    tested.scorer.tables.refresh_overview()
    peak = {one.name: one for one in tested.scorer.nodes().nodes}[name].peak
    assert peak is not None
    return peak


def _same(found: Peak, expected: Peak) -> None:
    assert (found.resource, found.at) == (expected.resource, expected.at)
    assert (found.expected, found.bound) == pytest.approx((expected.expected, expected.bound), rel=1e-4)


def test_a_report_has_the_peak_of_the_list_and_services_that_add_up(tested: LiveScorer) -> None:
    report = tested.scorer.node_report("node-0")
    assert (report.name, report.pods, report.ready, report.peak_hours) == ("node-0", 4, True, "next 24 h")
    assert report.peak is not None
    _same(report.peak, _peak_of(tested, "node-0"))
    assert len(report.starts) == len(report.expected) == len(report.bound) == 48
    assert max(report.expected) == pytest.approx(report.peak.expected)
    assert report.starts[report.expected.index(max(report.expected))] == report.peak.at
    assert [(one.service, one.pods) for one in report.services] == [
        ("shop/Deployment/service-5", 3),
        ("shop/Deployment/service-1", 1),
    ]
    assert all(one.usage > 0 and 0 < one.share < 1 for one in report.services)
    total = sum(one.usage for one in report.services) + report.besides_pods
    assert report.services[0].share == pytest.approx(report.services[0].usage / total)
    assert total <= max(report.expected)  # the mean lies below the median of the peak


def test_the_effect_of_a_move_is_what_comes_of_it_also_on_another_day(tested: LiveScorer) -> None:
    report = tested.scorer.node_report("node-0", top=2)
    assert [one.pod for one in report.largest] == ["shop/alone", "shop/replica-0"]
    better = report.largest[0].better
    assert better is not None and better.node in ("node-2", "node-3")
    _same(better.there_before, _peak_of(tested, better.node))
    moved = _scorer()
    moved.scorer.tables.delete(Kind.PODS, ALONE)
    moved.scorer.tables.put(Kind.PODS, replace(ALONE, node=better.node))
    _same(better.here_without, _peak_of(moved, "node-0"))
    _same(better.there_with, _peak_of(moved, better.node))
    _same(tested.scorer.node_report("node-0").peak or better.there_with, _peak_of(tested, "node-0"))  # nothing moved
    day = model().first_day + timedelta(days=3)
    report = tested.scorer.node_report("node-0", day=day)
    assert report.peak_hours == day.isoformat()
    assert {start.date() for start in report.starts} == {day}
    listed = tested.scorer.nodes(by_peak=True, top=1, day=day)
    assert (listed.peak_hours, listed.n_nodes) == (day.isoformat(), 4)
    assert [one.name for one in listed.nodes] == ["node-0"]
    assert report.peak is not None and listed.nodes[0].peak is not None
    # The live error of now has faded by then, in both.
    _same(report.peak, listed.nodes[0].peak)


def test_the_hottest_nodes_come_first_and_targets_have_room(tested: LiveScorer) -> None:
    listed = tested.scorer.nodes(by_peak=True).nodes
    shares = [one.peak.share for one in listed if one.peak is not None and one.peak.share is not None]
    assert len(shares) == 4 and shares == sorted(shares, reverse=True)
    assert [one.name for one in tested.scorer.nodes(top=2).nodes] == ["node-0", "node-1"]
    tested.scorer.tables.put(Kind.NODES, node("node-9"))
    assert tested.scorer.nodes(by_peak=True).nodes[-1].name == "node-9"  # it came after the overview
    asking = pod_of(5, "asking", "node-0", started=at(0), cpu=30.0)
    others = [pod_of(None, f"full-{i}", f"node-{i}", started=at(0), cpu=20.0) for i in (1, 2)]
    report = _scorer(asking, *others).scorer.node_report("node-0", top=50)
    found = {one.pod: one.better for one in report.largest}
    better = found["shop/asking"]
    assert better is not None and better.node == "node-3"
    full = pod_of(None, "full-3", "node-3", started=at(0), cpu=20.0)
    report = _scorer(asking, *others, full).scorer.node_report("node-0", top=50)
    asked = next(one for one in report.largest if one.pod == "shop/asking")
    assert asked.better is None and asked.why_not == "no other node has room for its requests"


def test_pods_count_where_they_sit_and_what_cannot_be_answered_says_so(tested: LiveScorer) -> None:
    plain: NodeReport = believing().scorer.node_report("node-0")
    assert "shop/a" in [one.pod for one in plain.largest]
    better = plain.largest[0].better
    assert plain.peak is not None and better is not None
    assert better.here_without.expected < plain.peak.expected
    with pytest.raises(UnknownName, match="node"):
        tested.scorer.node_report("node-77")
    with pytest.raises(InputError, match=r"there is no forecast of .*: name a day from"):
        tested.scorer.node_report("node-0", day=model().first_day - timedelta(days=1))
    with pytest.raises(InputError, match="there is no forecast"):
        tested.scorer.nodes(day=model().first_day + timedelta(days=7))
    bare = LiveScorer(pods=PODS, without_model=True).scorer
    report = bare.node_report("node-0")
    assert (report.peak, report.peak_hours, report.notes) == (None, None, ("no model has been published",))
    assert bare.nodes(by_peak=True).peak_hours is None


def test_what_is_measured_stands_beside_what_was_expected() -> None:
    tested = _scorer()
    report = tested.scorer.node_report("node-0", top=1)
    cpu = report.resources[0]
    assert cpu.resource == "cpu" and cpu.measured is not None and cpu.expected is not None and cpu.bound is not None
    assert cpu.measured == pytest.approx(cpu.expected, rel=0.05) and cpu.expected < cpu.bound
    today = {one.name: one for one in tested.scorer.nodes().nodes}["node-0"].today
    rest = {one.resource: one.rest_of_day for one in report.resources}
    assert today is not None and report.not_measured == ""
    _same(rest[today.resource] or today, today)
    assert report.largest[0].measured_now is None and report.largest[0].expected_now is not None
    tested.usage.of_pods[("shop", "alone")] = 1.25
    hot = np.zeros(N_RESOURCES)
    hot[0] = cpu.measured + 4.0
    tested.later(60.0)
    tested.measure({"node-0": hot})
    hotter = tested.scorer.node_report("node-0", top=1)
    assert hotter.resources[0].measured == pytest.approx(cpu.measured + 4.0)
    assert hotter.resources[0].expected == pytest.approx(cpu.expected)  # what was expected does not follow it
    assert hotter.expected[0] > report.expected[0] + 3.0  # the curve to come does
    assert hotter.largest[0].measured_now == 1.25


def test_it_says_why_nothing_is_measured() -> None:
    tested = _scorer()
    tested.usage.now = None
    tested.later(7200.0)
    tested.scorer.tables.measure()
    tested.usage.of_pods[("shop", "alone")] = 1.25
    report = tested.scorer.node_report("node-0", top=1)
    assert report.not_measured == "Prometheus cannot be asked: nobody answers"
    # A store that was found silent is not asked about pods: the report would wait for it.
    assert report.largest[0].measured_now is None
    assert report.notes == ("what pods use now cannot be read: nobody answers",)
    assert {one.measured for one in report.resources} == {None} and report.measured_seconds_ago is None
