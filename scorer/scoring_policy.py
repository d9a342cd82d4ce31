"""How the pods of one policy are scored, who says which pod is of which, and which pods want no forecast at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from cluster.predicted.growth_columns import ResourceWeights
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from scorer.options import ScorerOptions
from scorer.scores.score_catalogue import RegisteredScore, check_weights, scores

SETTINGS_POLICY: Final = "settings"
"""Name of the policy that the settings describe: that of pods for which nothing else chooses one."""

OPT_OUT_ANNOTATION: Final = ANNOTATION_PREFIX + "opt-out"
"""A pod with this set to "true" gets the same score on every node: the other schedulers' scores decide alone."""


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """What counts, and how much.

    weights          : of the scores by name
    scores           : all scores by name, with this policy's parameters
    resource_weights : by resource of forecast.resources, (n_resources,), of predicted peaks; None = the default ones
    """

    name: str
    weights: Mapping[str, float]
    scores: Mapping[str, RegisteredScore]
    resource_weights: ResourceWeights | None = None

    def weighing(self, weights: Mapping[str, float] | None) -> ScoringPolicy:
        """The same with other weights; None = its own. Raises InputError where scores are misnamed."""
        if weights is None:
            return self
        check_weights(weights, self.scores)
        return replace(self, weights=weights)


@dataclass(frozen=True, slots=True)
class ChosenScoring:
    """The policy of a pod, and what chose it: "its annotation", "rule 2"; '' = there is no other."""

    policy: ScoringPolicy
    because: str = ""


class ScoringPolicies(Protocol):
    """Which policy a pod is scored by. Asked for every pod, by any thread, while the tables are locked: it must be
    quick and wait for nothing."""

    def scoring(self, pod: PodInfo) -> ChosenScoring:
        """The policy as it is now."""


class OneScoringPolicy:
    """The same for every pod. Implements ScoringPolicies."""

    def __init__(self, policy: ScoringPolicy) -> None:
        self._chosen = ChosenScoring(policy)

    def scoring(self, pod: PodInfo) -> ChosenScoring:
        return self._chosen


def scoring_policy(options: ScorerOptions) -> ScoringPolicy:
    """The policy that the options describe. Raises InputError where scores are misnamed."""
    registered = scores(options.scores)
    check_weights(options.scores.weights, registered)
    return ScoringPolicy(SETTINGS_POLICY, dict(options.scores.weights), registered)


def opts_out(pod: PodInfo) -> bool:
    """Whether the pod has the annotation, in any case."""
    return pod.annotations.get(OPT_OUT_ANNOTATION, "").lower() == "true"
