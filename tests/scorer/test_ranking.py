"""The ranking alone is that of all scores, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.degradation import Level
from kube.decoding.decoding import Kind
from scorer.options import ScorerOptions
from scorer.scoring import ranking_of, score_pod
from scorer.scoring_policy import scoring_policy
from tests.scorer.live_cluster import at, node, pod_of
from tests.scorer.scorer_at import LiveScorer

WEIGHTS = (
    {"predicted_peak": 1.0},
    {"predicted_peak": 3.0, "most_available": 0.0},
    {"predicted_peak": 1.0, "least_allocated": 2.0},
    {"least_allocated": 1.0},
)


@settings(max_examples=25, deadline=None)
@given(
    landed=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 23)), max_size=40),
    some=st.sets(st.integers(0, 23), min_size=1),
    level=st.sampled_from(list(Level)),
    weights=st.sampled_from(WEIGHTS),
)
def test_as_of_all_scores(
    landed: list[tuple[int, int]], some: set[int], level: Level, weights: dict[str, float]
) -> None:
    pods = [pod_of(of, f"p{n}", f"node-{row}", started=at(0)) for n, (of, row) in enumerate(landed)]
    tested = LiveScorer(pods=pods, sizes=[20.0, 40.0, 80.0] * 8)
    unknown = node("stranger", 40.0)
    tested.scorer.tables.put(Kind.NODES, replace(unknown, capacity={}, allocatable={}))
    policy = scoring_policy(ScorerOptions()).weighing(weights)
    with tested.scorer.tables.reading() as cluster:
        assert cluster.predicted is not None and not cluster.predicted.load.known[24]
        for rows in (np.array(sorted(some)), np.array([*sorted(some), 24]), np.arange(25)):
            asked = (cluster, pod_of(1, "new"), rows, policy, level)
            np.testing.assert_array_equal(ranking_of(*asked), score_pod(*asked).ranking)
