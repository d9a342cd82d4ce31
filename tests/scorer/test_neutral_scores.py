"""Without a usable model the forecast's part of a policy is neutral, and every other score counts as before."""

from __future__ import annotations

import numpy as np
import pytest

from cluster.degradation import Level
from scorer.judgement import Judgement
from scorer.scores.score_catalogue import SCORES
from scorer.scoring import WhyNeutral, neutral_reasons
from scorer.scoring_policy import ChosenScoring, ScoringPolicy
from scorer.service.scorer_service_metrics import ScorerServiceMetrics
from scorer.service.scorer_service_settings import ScorerServiceOptions
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer

POD, NODES = pod_of(1, "new"), ["node-0", "node-1", "node-2", "node-3"]
LOADED = [pod_of(n % 6, f"p{n}", f"node-{n % 3}", cpu=2.0) for n in range(9)]
OTHERS = {"most_available": 1.0, "qos_balance": 2.0}
MIXED = ScoringPolicy("mixed", {"predicted_peak": 1.0, **OTHERS}, SCORES)


def without_forecast(days: int, **usage: float) -> LiveScorer:
    """A scorer whose model is so old, 0 = it has none, with what nodes use now."""
    tested = LiveScorer(pods=LOADED, without_model=not days)
    if days:
        tested.at(17.0, days)
    of = {"node-0": 30.0, "node-1": 10.0, "node-2": 20.0, "node-3": 25.0} | usage
    tested.measure(of)
    return tested


@pytest.mark.parametrize(("days", "why"), [(0, "no model is in use"), (27, "the model is too old")])
def test_only_the_part_of_the_forecast_is_neutral(days: int, why: str) -> None:
    tested = without_forecast(days)
    scored, alone = (tested.scorer.score(POD, NODES, policy=of) for of in (MIXED, ScoringPolicy("x", OTHERS, SCORES)))
    assert scored.level == Level.REQUESTS
    np.testing.assert_allclose(scored.ranking, (50.0 + 3 * alone.ranking) / 4)
    assert np.ptp(scored.ranking) > 5
    said = f"predicted_peak is neutral: {why}, most_available and qos_balance count as before"
    assert said in scored.reasons
    assert said in tested.scorer.explain(POD, weights=MIXED.weights).reasons
    assert not any("neutral" in reason for reason in alone.reasons)


def test_a_node_in_use_to_the_last_bit_comes_after_all_others() -> None:
    tested = without_forecast(0, **{"node-3": 41.0})
    ranking = tested.scorer.score(POD, NODES, policy=MIXED).ranking
    assert ranking[3] <= ranking[:3].min() - 20.0
    # The forecast alone: as it was, 20 points below the neutral 50.
    assert tested.scorer.score(POD, NODES).ranking.tolist() == [50.0, 50.0, 50.0, 30.0]


def test_an_explanation_for_a_component_shows_what_its_sums_are_made_of() -> None:
    tested = without_forecast(0)
    judgement = Judgement("profile online", tuple(NODES), dict.fromkeys(NODES, 7.0), n_nodes=4)
    scored = tested.scorer.score(POD, NODES, MIXED.weights)
    tested.scorer._policies = ByPolicy(MIXED)
    explained = tested.scorer.explain(POD, judge=lambda pod: judgement)
    for node, ranked in zip(explained.nodes, scored.ranking.tolist(), strict=True):
        assert {part.name: part.weight for part in node.contributions} == MIXED.weights
        assert next(part.score for part in node.contributions if part.name == "predicted_peak") == 50.0
        assert node.score == pytest.approx(ranked, abs=1e-4)


class ByPolicy:
    """Scores every pod by one policy."""

    def __init__(self, policy: ScoringPolicy) -> None:
        self.policy = policy

    def scoring(self, pod: object) -> ChosenScoring:
        return ChosenScoring(self.policy)


@pytest.mark.parametrize(
    ("days", "neutral"),
    [(0, {"predicted_peak": "no_model", "qos_memory": "no_model"}), (27, {"predicted_peak": "old_model"})],
)
def test_status_and_metric_name_what_is_neutral_and_why(days: int, neutral: dict[str, str]) -> None:
    tested = without_forecast(days)
    assert tested.scorer.status().neutral_scores == neutral
    text = (
        ScorerServiceMetrics(tested.scorer, ScorerServiceOptions(node_metrics=False, service_metrics=False))
        .render()
        .decode()
    )
    lines = [line for line in text.splitlines() if line.startswith("forecast_score_neutral{")]
    assert lines == [f'forecast_score_neutral{{because="{why}",score="{name}"}} 1.0' for name, why in neutral.items()]


def test_usage_that_is_not_measured_and_a_state_that_is_old_are_said_too() -> None:
    tested = LiveScorer(pods=LOADED)
    assert tested.scorer.status().neutral_scores == {"most_available": "no_usage"}
    assert tested.scorer.score(POD, NODES, policy=MIXED).reasons[-1] == (
        "most_available is neutral: no node is measured, predicted_peak and qos_balance count as before"
    )
    tested.clock.now += 901
    tested.scorer.tables.tick()
    assert set(tested.scorer.status().neutral_scores) == set(SCORES)
    assert neutral_reasons({"balance": 1.0, "qos_balance": 0.0}, dict.fromkeys(SCORES, WhyNeutral.OLD_STATE)) == (
        "balance is neutral: the state of the cluster is too old",
    )


def test_with_a_model_and_measured_nodes_nothing_is_neutral() -> None:
    tested = LiveScorer(pods=LOADED)
    tested.measure_as_expected()
    assert tested.scorer.status().neutral_scores == {}
    assert tested.scorer.score(POD, NODES, policy=MIXED).reasons == ()


def test_the_report_of_a_node_finds_a_place_for_its_pods_by_requests() -> None:
    tested = LiveScorer(pods=[*LOADED, pod_of(0, "much", "node-1", cpu=30.0)])
    tested.at(17.0, 27)
    better = {one.better.node for one in tested.scorer.node_report("node-0").largest if one.better is not None}
    assert better == {"node-3"}  # where nothing is requested
