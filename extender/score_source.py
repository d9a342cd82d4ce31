"""Where scores come from: the scorer in this process, or one elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kube.objects.objects import PodInfo
from scorer.policy import ScoringPolicy
from scorer.scorer import Scorer
from scorer.scorer_api import Scored


class ScoreSource(Protocol):
    """Scores of a pod, and a way to say where it will probably go."""

    def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
        """0..100 for each node, in the order asked. Raises ForecastError where there is no answer.

        policy : None = the one chosen for the pod. A scorer elsewhere chooses itself, from the same document
        """

    def charge(self, pod: PodInfo, node: str, seconds: float) -> None:
        """Have a remote scorer count the pod on that node, too. If the scorer cannot be reached, nothing is lost."""


class LocalScores:
    """The scorer in this process: no hop, and no copy of the cluster more."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
        return self._scorer.score(pod, nodes, policy=policy)

    def charge(self, pod: PodInfo, node: str, seconds: float) -> None:
        """The tables are those of the scorer inside, which knows."""
