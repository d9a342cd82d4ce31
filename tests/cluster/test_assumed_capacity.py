"""Assumed capacities in a live scorer: they count in scores, are marked wherever they are shown, and are no limit."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from cluster.predicted.node_capacity import CAPACITY_ANNOTATION
from forecast.model import PeakModel
from forecast.resources import CPU, DISK
from kube.decoding.decoding import Kind
from placement.filters.filter import ClusterView
from placement.filters.predicted_peak import PredictedPeak
from placement.index.index import PlacementIndex
from scorer.highest_peak import peak_words
from scorer.options import ScorerOptions
from testing.placement.views import passing
from tests.scorer.live_cluster import assuming, at, loaded, model, node, pod_of
from tests.scorer.scorer_at import LiveScorer, tables

TIGHT = dict.fromkeys(range(4), 12.0)
"""A disk capacity so low that disk is the fullest resource of every node."""

PODS = [pod_of(5, "p0", "node-0", started=at(0)), pod_of(1, "q", "node-2", started=at(0))]
HERE = [False, False, True, False, False]


def scorer_with(of: PeakModel, options: ScorerOptions | None = None) -> LiveScorer:
    tested = LiveScorer(12.0, pods=PODS, model=loaded(of), options=options)
    tested.scorer.tables.refresh_overview()
    return tested


@pytest.mark.parametrize("is_assumed", [True, False])
def test_it_is_marked_wherever_it_is_shown_and_counts_where_no_other_is_known(is_assumed: bool) -> None:
    of = assuming(TIGHT) if is_assumed else assuming({}, known=TIGHT)
    scorer = scorer_with(of).scorer
    explained = scorer.explain(pod_of(5, "new"), top=4)
    peaks = [peak for one in explained.nodes for peak in (one.peak_before, one.peak_with)]
    listed = [peak for one in scorer.nodes().nodes for peak in (one.today, one.tomorrow)]
    shown = {(peak.resource, peak.assumed) for peak in (*peaks, *listed) if peak is not None}
    assert len(peaks) == 8 and None not in peaks and None not in listed
    assert {assumed for _, assumed in shown} == {False}
    assert ("disk" in {resource for resource, _ in shown}) == (not is_assumed)
    assert explained.assumed_capacities == (("disk",) if is_assumed else ())
    curves = scorer.node_forecast("node-0").curves
    assert [curve.assumed for curve in curves] == [is_assumed and i == DISK for i in range(5)]
    assert scorer.virtual_available().assumed.tolist() == [HERE if is_assumed else [False] * 5] * 4
    assert scorer.node_figures().assumed.tolist() == [HERE if is_assumed else [False] * 5] * 4
    for resource, mark in (("disk", is_assumed), ("cpu", False), (None, False)):
        assert scorer.heat_map(resource=resource).assumed == (mark,) * 4
    assert scorer.self_check().sound


def test_an_assumed_capacity_counts_in_scores_and_rejects_nothing() -> None:
    pod = pod_of(0, "new")
    unlimited, assumed = (scorer_with(assuming(of)).scorer.score(pod).ranking for of in ({}, TIGHT))
    np.testing.assert_array_equal(assumed, scorer_with(assuming({}, known=TIGHT)).scorer.score(pod).ranking)
    assert not np.allclose(unlimited, assumed)
    pod = pod_of(5, "new")
    for of, passes in ((assuming(TIGHT), {f"node-{i}" for i in range(4)}), (assuming({}, known=TIGHT), set())):
        tested = scorer_with(of)
        cluster = tested.scorer.tables._cluster
        view = ClusterView(cluster, PlacementIndex(cluster.state))
        assert passing(PredictedPeak({"disk": 1e-6}), pod, view) == passes
        load = tables(tested).load.peaks_with(cluster.profile(pod), np.array([0]))[0]
        peak = tested.scorer.expected_peak(pod, "node-0")
        assert peak is not None and (peak.resource == "disk") == (not passes) and not peak.assumed
        assert load[DISK] > 2 * load[CPU]
    # At level REQUESTS, where live load only keeps pods off nodes that are full.
    for of, is_full in ((assuming(TIGHT), False), (assuming({}, known=TIGHT), True)):
        tested = scorer_with(of)
        tested.at(12.0, day=20)
        tested.measure({"node-0": [1.0, 1.0, 13.0, 1.0, 1.0], **{f"node-{i}": 1.0 for i in range(1, 4)}})
        scored = tested.scorer.score(pod_of(0, "new"))
        assert scored.weights.keys() == {"least_allocated", "balanced_allocation"}
        assert (scored.scores[0] == 0.0) == is_full


def test_one_line_says_which_resource_has_no_capacity(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    scorer_with(model())
    scorer_with(assuming(TIGHT))
    assert not caplog.records
    tested = scorer_with(assuming({0: 12.0}))
    assert not caplog.records  # nodes with as much CPU are taken to be like it
    tested = scorer_with(assuming({}))
    (line,) = [record.getMessage() for record in caplog.records]
    assert "disk on all 4 nodes" in line and "prometheus.disk_capacity" in line
    tested.scorer.tables.install(loaded(assuming({}), "v2"))
    assert len(caplog.records) == 1  # not every night
    scorer_with(assuming({}), ScorerOptions(capacities={"disk": 7.0}))
    assert len(caplog.records) == 1


def test_a_mistake_in_a_capacity_annotation_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    tested = scorer_with(model())
    broken = node("node-3", annotations={CAPACITY_ANNOTATION: '{"log": 7, "dsk": 1}'})
    tested.scorer.tables.put(Kind.NODES, broken)
    tested.later(1)
    tested.later(1)
    assert tested.scorer.virtual_available().capacity[3].tolist() == [40, 40, 40, 40, 7]
    assert tested.scorer.status().unread_capacities == 1
    (record,) = caplog.records
    assert "node-3: annotation names the resource 'dsk'" in record.__dict__["nodes"]
    tested.scorer.tables.put(Kind.NODES, replace(broken, unschedulable=True))
    tested.later(1)
    assert len(caplog.records) == 1
    tested.scorer.tables.put(Kind.NODES, node("node-3"))
    tested.later(1)
    assert tested.scorer.status().unread_capacities == 0
    tested.scorer.tables.put(Kind.NODES, broken)
    tested.scorer.tables.delete(Kind.NODES, broken)
    assert tested.scorer.status().unread_capacities == 0


def test_a_node_whose_capacities_are_all_assumed_is_listed_by_one_of_them() -> None:
    disk_only = np.where(np.arange(5) == DISK, np.float32(12.0), np.float32(np.nan)) * np.ones((4, 1), dtype=np.float32)
    unknown = replace(assuming(TIGHT), node_capacity=disk_only)
    tested = LiveScorer(12.0, pods=PODS, model=loaded(unknown), sizes=(0.0, 0.0, 0.0, 0.0))
    tested.scorer.tables.refresh_overview()
    (first, *_) = tested.scorer.nodes(by_peak=True).nodes
    assert first.peak is not None and (first.peak.resource, first.peak.assumed) == ("disk", True)
    words = peak_words(first.peak, tested.scorer.tables.now().date())
    assert "% of an assumed capacity of disk at 20:00, upper bound (95 %) " in words
