"""Which scores are the same for all nodes now, because what they read is not there, and why.

The other scores of a policy go on as before: a score that is neutral keeps its weight, and adds the same to every node.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from cluster.degradation import Level
from cluster.tracking import TrackedCluster
from scorer.scores.catalogue import SCORES


class WhyNeutral(Enum):
    """Label `because` of the metric forecast_score_neutral."""

    NO_MODEL = "no_model"
    OLD_MODEL = "old_model"
    NO_USAGE = "no_usage"
    OLD_STATE = "old_state"


_WORDS: Mapping[WhyNeutral, str] = {
    WhyNeutral.NO_MODEL: "no model is in use",
    WhyNeutral.OLD_MODEL: "the model is too old",
    WhyNeutral.NO_USAGE: "no node is measured",
    WhyNeutral.OLD_STATE: "the state of the cluster is too old",
}


def neutral_scores(cluster: TrackedCluster, level: Level) -> Mapping[str, WhyNeutral]:
    """Return the scores that are neutral, with the reason; under the lock. level: of the cluster as a whole."""
    if level == Level.NEUTRAL:
        return dict.fromkeys(SCORES, WhyNeutral.OLD_STATE)
    found = {}
    if cluster.predicted is None:
        found = dict.fromkeys(("predicted_peak", "qos_memory"), WhyNeutral.NO_MODEL)
    elif level == Level.REQUESTS:  # what pods need at their peak changes less in weeks than the hour of the peak does
        found = {"predicted_peak": WhyNeutral.OLD_MODEL}
    if not (cluster.measured_nodes() & cluster.state.alive).any():
        found["most_available"] = WhyNeutral.NO_USAGE
    return found


def neutral_reasons(weights: Mapping[str, float], neutral: Mapping[str, WhyNeutral]) -> tuple[str, ...]:
    """Return a sentence for each reason why scores that should count are neutral; it names those that go on.

    weights : of the scores that should count
    """
    counted = [name for name, weight in weights.items() if weight > 0]
    others = [name for name in counted if name not in neutral]
    sentences = []
    for why in WhyNeutral:
        if names := [name for name in counted if neutral.get(name) is why]:
            rest = f", {_listed(others)} count{'s' * (len(others) == 1)} as before" if others else ""
            sentences.append(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} neutral: {_WORDS[why]}{rest}")
    return tuple(sentences)


def _listed(names: list[str]) -> str:
    """Return a, b and c."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])
