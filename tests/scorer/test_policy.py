"""Pods are scored by the policy that is chosen for them, and answers say by which."""

from __future__ import annotations

import numpy as np
import pytest

from base.errors import InputError
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer.options import ScorerOptions
from scorer.scores.score_catalogue import SCORES
from scorer.scoring_policy import SETTINGS_POLICY, ChosenScoring, ScoringPolicy, scoring_policy
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer

LOADED = [pod_of(n % 6, f"p{n}", "node-0" if n < 30 else f"node-{1 + n % 2}", cpu=1.0) for n in range(50)]
NODES = ["node-0", "node-1", "node-2", "node-3"]


class ByName:
    """Pods whose name starts with that of a policy are scored by it."""

    def __init__(self, *policies: ScoringPolicy) -> None:
        self.policies = policies

    def scoring(self, pod: PodInfo) -> ChosenScoring:
        for policy in self.policies:
            if pod.name.startswith(policy.name):
                return ChosenScoring(policy, f"its name, {pod.name}")
        return ChosenScoring(scoring_policy(ScorerOptions()))


STACK = ScoringPolicy("stack", {"most_allocated": 1.0}, SCORES)
LOG_ONLY = ScoringPolicy(
    "log", {"predicted_peak": 1.0}, SCORES, tuple(float(resource.name == "log") for resource in RESOURCES)
)


def test_each_pod_is_scored_by_its_own_policy_or_the_one_handed_over() -> None:
    tested = LiveScorer(pods=LOADED, policies=ByName(STACK))
    stacked, usual = (tested.scorer.score(pod_of(0, name), NODES) for name in ("stack-1", "other"))
    assert (stacked.policy, dict(stacked.weights)) == ("stack", {"most_allocated": 1.0})
    assert (usual.policy, dict(usual.weights)) == (SETTINGS_POLICY, {"predicted_peak": 1.0})
    assert np.argmax(stacked.scores) == 0  # where most is requested
    assert np.argmin(usual.scores) == 0  # where most will be used
    alone = LiveScorer(pods=LOADED).scorer.score(pod_of(0, "other"), NODES)
    np.testing.assert_array_equal(usual.scores, alone.scores)
    tested = LiveScorer(pods=LOADED, policies=ByName())
    assert tested.scorer.score(pod_of(0, "other"), NODES, policy=STACK).policy == "stack"
    # The load of node-0 is CPU: to a policy that looks at log bytes alone its services' log bytes count.
    tested = LiveScorer(pods=LOADED, policies=ByName(LOG_ONLY))
    everything = tested.scorer.score(pod_of(0, "other"), NODES).ranking
    log = tested.scorer.score(pod_of(0, "log-1"), NODES).ranking
    assert not np.allclose(everything, log)
    usual_again = tested.scorer.score(pod_of(0, "other"), NODES).ranking
    np.testing.assert_array_equal(everything, usual_again)


def test_weights_asked_for_win_and_policies_are_named() -> None:
    tested = LiveScorer(pods=LOADED, policies=ByName(STACK))
    asked = tested.scorer.score(pod_of(0, "stack-1"), NODES, {"least_allocated": 1.0})
    assert dict(asked.weights) == {"least_allocated": 1.0}
    with pytest.raises(InputError, match="did you mean least_allocated"):
        tested.scorer.score(pod_of(0, "stack-1"), NODES, {"least_alocated": 1.0})
    tested = LiveScorer(pods=[pod_of(1, "stack-1", "node-0"), pod_of(2, "usual", "node-1")], policies=ByName(STACK))
    explanation = tested.scorer.explain(pod_of(0, "stack-2"))
    assert (explanation.policy, explanation.policy_because) == ("stack", "its name, stack-2")
    assert {part.name for part in explanation.nodes[0].contributions} == {"most_allocated"}
    usual = tested.scorer.explain(pod_of(0, "other"))
    assert (usual.policy, usual.policy_because) == (SETTINGS_POLICY, "")
    of = {
        number: tested.scorer.service_forecast(ServiceKey("shop", "Deployment", f"service-{number}")).notes
        for number in (1, 2)
    }
    assert "policy stack (its name, stack-1)" in of[1]
    assert not any("policy" in note for note in of[2])
