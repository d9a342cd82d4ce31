"""The degradation ladder, one rung at a time, and per node where usage is missing for some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cluster.degradation import Level, level_of_nodes, level_without_live
from cluster.options import Ladder
from scorer.scoring import weights_without_model
from scorer.scoring_policy import OPT_OUT_ANNOTATION
from tests.scorer.live_cluster import loaded, model, pod_of
from tests.scorer.scorer_at import LiveScorer

POD = pod_of(5, "new")
HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.parametrize(
    ("model_age", "state_age", "level"),
    [
        (0.0, 0.0, Level.NO_LIVE_CORRECTION),
        (36 * HOUR, 900.0, Level.NO_LIVE_CORRECTION),
        (36 * HOUR + 1, 0.0, Level.OLD_MODEL),
        (14 * DAY, 0.0, Level.OLD_MODEL),
        (14 * DAY + 1, 0.0, Level.REQUESTS),
        (None, 0.0, Level.REQUESTS),
        (0.0, 901.0, Level.NEUTRAL),
        (None, 901.0, Level.NEUTRAL),
    ],
)
def test_the_level_follows_from_the_age_of_model_and_state(
    model_age: float | None, state_age: float, level: Level
) -> None:
    assert level_without_live(model_age, state_age, Ladder()) == level


@pytest.mark.parametrize("level", list(Level))
def test_only_nodes_that_are_measured_are_corrected(level: Level) -> None:
    levels = level_of_nodes(level, np.array([True, False])).tolist()
    expected = [Level.FRESH, Level.NO_LIVE_CORRECTION] if level <= Level.NO_LIVE_CORRECTION else [level, level]
    assert levels == expected


def crowded() -> list[object]:
    """Node 0 has the pods of the evening's largest service, node 1 has large requests that use little."""
    busy = [pod_of(5, f"busy-{i}", "node-0", cpu=0.1, memory=0.1) for i in range(4)]
    return [*busy, pod_of(0, "idle", "node-1", cpu=30.0, memory=30.0)]


def scores(tested: LiveScorer) -> dict[str, float]:
    scored = tested.scorer.score(POD)
    return dict(zip(scored.nodes, scored.scores.tolist(), strict=True))


def test_down_the_ladder_one_rung_at_a_time_and_up_again() -> None:
    tested = LiveScorer(17.0, pods=crowded())  # type: ignore[arg-type]
    tested.measure_as_expected()
    assert tested.scorer.status().level == Level.FRESH
    assert tested.scorer.status().reasons == ()
    fresh = scores(tested)
    assert min(fresh, key=fresh.__getitem__) == "node-0"

    tested.later(301.0)
    status = tested.scorer.status()
    assert status.level == Level.NO_LIVE_CORRECTION
    assert "usage is measured on 0 of 4 nodes" in status.reasons[0]
    assert min(scores(tested), key=scores(tested).__getitem__) == "node-0"

    tested.at(13.0, 1)
    assert tested.scorer.status().level == Level.OLD_MODEL
    assert any("37 hours old" in reason for reason in tested.scorer.status().reasons)
    assert min(scores(tested), key=scores(tested).__getitem__) == "node-0"

    tested.at(13.0, 14)
    assert tested.scorer.status().level == Level.REQUESTS
    assert any("15 days old, more than 14" in reason for reason in tested.scorer.status().reasons)
    assert min(scores(tested), key=scores(tested).__getitem__) == "node-1"  # the one with the requests

    tested.clock.now += 901
    tested.scorer.tables.tick()
    assert tested.scorer.status().level == Level.NEUTRAL
    assert any("has not been heard of for 901 s" in reason for reason in tested.scorer.status().reasons)
    assert set(scores(tested).values()) == {50.0}

    tested.contact = tested.clock.now
    newer = replace(model(), first_day=tested.scorer.status().now.date())
    tested.scorer.tables.install(loaded(newer, "v2"))
    tested.measure_as_expected()
    assert tested.scorer.status().level == Level.FRESH
    assert min(scores(tested), key=scores(tested).__getitem__) == "node-0"
    assert tested.scorer.score(POD).model_version == "v2"


def test_nodes_that_nobody_measures_are_a_rung_lower_than_the_others() -> None:
    tested = LiveScorer()
    tested.measure({"node-0": 1.0, "node-1": 1.0, "node-2": 1.0})
    levels = {summary.name: summary.level for summary in tested.scorer.nodes().nodes}
    assert levels == {
        **dict.fromkeys(["node-0", "node-1", "node-2"], Level.FRESH),
        "node-3": Level.NO_LIVE_CORRECTION,
    }
    assert tested.scorer.node_forecast("node-3").level == Level.NO_LIVE_CORRECTION
    assert tested.scorer.node_figures().level.tolist() == [0, 0, 0, 1]
    explained = tested.scorer.explain(POD, ["node-3", "node-0"])
    assert {node.node: node.level for node in explained.nodes} == {
        "node-0": Level.FRESH,
        "node-3": Level.NO_LIVE_CORRECTION,
    }
    status = tested.scorer.status()
    assert (status.level, status.measured_nodes) == (Level.FRESH, 3)
    assert status.reasons == ("usage is measured on 3 of 4 nodes",)
    tested.later(200)
    tested.measure({"node-0": 1.0})
    tested.later(101)
    assert tested.scorer.status().level == Level.NO_LIVE_CORRECTION  # a quarter of the nodes is not the cluster


def test_why_nothing_is_measured_is_told_also_of_a_server_without_figures() -> None:
    tested = LiveScorer()
    tested.measure(dict.fromkeys(["node-0", "node-1", "node-2", "node-3"], np.nan))
    status = tested.scorer.status()
    assert (status.level, status.measured_nodes) == (Level.NO_LIVE_CORRECTION, 0)
    tested = LiveScorer()
    tested.scorer.tables.measure()
    assert tested.scorer.status().sources["usage"] == "nobody answers"
    assert tested.scorer.status().reasons == ("usage is measured on 0 of 4 nodes: nobody answers",)
    tested.measure_as_expected()
    assert tested.scorer.status().sources["usage"] == "measured"


def test_by_requests_nodes_in_use_to_the_last_bit_are_avoided_unless_all_are() -> None:
    tested = LiveScorer(without_model=True)
    tested.measure({"node-0": [40.0, 1, 1, 1, 1], "node-1": 39.0, "node-2": 1.0, "node-3": 1.0})
    scored = scores(tested)
    assert scored["node-0"] == 0.0
    assert scored["node-1"] == scored["node-2"] > 0  # full is what counts, not fuller
    explained = tested.scorer.explain(POD, ["node-0"])
    assert "avoided" not in " ".join(explained.nodes[0].notes)  # there is no other
    worst = tested.scorer.explain(POD).nodes[-1]
    assert worst.node == "node-0"
    assert any("in use now to its capacity" in note for note in worst.notes)
    tested.measure(dict.fromkeys(["node-0", "node-1", "node-2", "node-3"], 41.0))
    assert len(set(scores(tested).values())) == 1
    assert scores(tested)["node-0"] > 0
    tested.later(301)
    assert scores(tested)["node-0"] > 0  # what was measured then says nothing now


def test_a_pod_just_placed_can_fill_a_node_before_anybody_measures_it() -> None:
    tested = LiveScorer(without_model=True)
    tested.measure(dict.fromkeys(["node-0", "node-1", "node-2", "node-3"], 30.0))
    tested.put(pod_of(None, "large", "node-2", cpu=10.0))
    assert scores(tested)["node-2"] == 0.0


def test_without_the_forecast_its_weight_goes_to_other_scores_and_nobody_opted_out_counts() -> None:
    assert weights_without_model({"predicted_peak": 2.0, "qos_balance": 1.0}) == {
        "qos_balance": 1.0,
        "least_allocated": 1.0,
        "balanced_allocation": 1.0,
    }
    tested = LiveScorer(without_model=True)
    assert tested.scorer.score(POD).weights == {"least_allocated": 0.5, "balanced_allocation": 0.5}
    tested = LiveScorer(pods=crowded())  # type: ignore[arg-type]
    out = replace(POD, annotations={OPT_OUT_ANNOTATION: "True"})
    scored = tested.scorer.score(out)
    assert set(scored.scores.tolist()) == {50.0}
    assert "the pod has opted out" in scored.reasons
    assert "the pod has opted out" in tested.scorer.explain(out).reasons
    stays = replace(POD, annotations={OPT_OUT_ANNOTATION: "false"})
    assert len(set(tested.scorer.score(stays).scores.tolist())) > 1
