"""Where scores come from: the scorer in this process, or one elsewhere, over its HTTP API (docs/use/http-api.md)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.objects.pod_json import pod_json
from scorer.scorer import Scorer
from scorer.scorer_api import Scored
from scorer.scoring_policy import ScoringPolicy
from scorer.service.scorer_bodies import ScoresBody
from serving.remote_service import RemoteAddress, RemoteService, ServiceUnavailable

logger = logging.getLogger(__name__)

_SCORES = msgspec.json.Decoder(ScoresBody)
RemoteScorer = RemoteAddress
ScorerUnavailable = ServiceUnavailable


class RemoteScores:
    """Implements score_source.ScoreSource. Connections are kept open; nothing is sent twice."""

    def __init__(self, remote: RemoteScorer) -> None:
        """Raises InputError: a URL or file that cannot be used."""
        self._remote = remote
        self._charge_notice = FailureNotice(logger, "pods are placed without a provisional charge")
        self._service = RemoteService(remote, "scorer")

    def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
        """Ask for the scores, which are by that scorer's own policy for the pod. Raises ScorerUnavailable."""
        answer = self._post("/v1/scores", {"pod": pod_json(pod), "nodes": list(nodes), "ranking": True})
        try:
            body = _SCORES.decode(answer)
            scores = np.array([body.scores[node] for node in nodes], dtype=np.float64)
            by_node = body.scores if body.ranking is msgspec.UNSET else body.ranking
            ranking = np.array([by_node[node] for node in nodes], dtype=np.float64)
        except (msgspec.DecodeError, KeyError, ValueError) as error:
            raise ScorerUnavailable(f"the scorer {self._remote.url} did not answer with scores: {error}") from error
        reasons, unknown = tuple(body.reasons), tuple(body.unknown_nodes)
        return Scored(nodes, scores, ranking, body.level, reasons, body.model, body.weights, unknown, body.policy)

    def charge(self, pod: PodInfo, node: str, seconds: float) -> None:
        """Report where the pod will probably go. If the scorer cannot be reached, its scores stay valid."""
        try:
            self._post("/v1/charges", {"pod": pod_json(pod), "node": node, "seconds": seconds})
        except ScorerUnavailable as error:
            self._charge_notice.failed(str(error))
        else:
            self._charge_notice.succeeded()

    def _post(self, path: str, body: dict[str, Any]) -> bytes:
        return self._service.request("POST", path, msgspec.json.encode(body))


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
