"""Scores from a scorer that runs elsewhere, over its HTTP API (docs/http-api.md)."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import urllib3

from forecast.errors import ForecastError, InputError
from scorer.answers import Scored
from scorer.cluster.objects import PodInfo
from scorer.cluster.pod_json import pod_json
from scorer.degradation import Level
from scorer.policy import ScoringPolicy
from scorer.service.bodies import ScoresBody

__all__ = ["RemoteScorer", "RemoteScores", "ScorerUnavailable"]

logger = logging.getLogger(__name__)

_SCORES = msgspec.json.Decoder(ScoresBody)
_CONNECTIONS = 16


class ScorerUnavailable(ForecastError):
    """The scorer elsewhere does not answer, or not with scores."""


@dataclass(frozen=True, slots=True)
class RemoteScorer:
    """Where it is and how to speak to it.

    url        : for instance https://scorer.forecast-scheduler:8080
    token_file : file with a bearer token, read again for every request; None = none is asked for
    ca         : PEM file its certificate is checked against; None = the system's
    client_cert, client_key : PEM files to show where it asks for a certificate; the key may be in the certificate's
    seconds    : an answer must come within
    """

    url: str
    token_file: Path | None = None
    ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    seconds: float = 0.2


class RemoteScores:
    """Implements score_source.ScoreSource. Connections are kept open; nothing is sent twice."""

    def __init__(self, remote: RemoteScorer) -> None:
        """Raises InputError: a URL or file that cannot be used."""
        self._remote = remote
        self._charges_fail = False
        if not _is_url(remote.url):
            raise InputError(f"scorer {remote.url!r} is not a URL: write for instance http://scorer:8080")
        secured = remote.url.lower().startswith("https://")
        if not secured and any((remote.ca, remote.client_cert, remote.client_key)):
            raise InputError(
                f"the scorer {remote.url} is asked without TLS, and TLS files are named: write https://..."
            )
        if remote.client_key is not None and remote.client_cert is None:
            raise InputError(f"client_key is set for the scorer {remote.url} without client_cert: name both")
        try:
            self._headers()
        except (OSError, ValueError) as error:
            raise InputError(
                f"the token file for the scorer {remote.url} cannot be used: {_one_line(error)}"
            ) from error
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS,
            block=False,
            retries=False,
            timeout=urllib3.Timeout(total=remote.seconds),
            ssl_context=_tls(remote) if secured else None,
        )

    def score(self, pod: PodInfo, nodes: Sequence[str], policy: ScoringPolicy | None = None) -> Scored:
        """Ask for the scores, which are by that scorer's own policy for the pod. Raises ScorerUnavailable."""
        answer = self._post("/v1/scores", {"pod": pod_json(pod), "nodes": list(nodes), "ranking": True})
        try:
            body = _SCORES.decode(answer)
            scores = np.array([body.scores[node] for node in nodes], dtype=np.float64)
            by_node = body.scores if body.ranking is msgspec.UNSET else body.ranking
            ranking = np.array([by_node[node] for node in nodes], dtype=np.float64)
            level = Level(body.level)
        except (msgspec.DecodeError, KeyError, ValueError) as error:
            raise ScorerUnavailable(f"the scorer {self._remote.url} did not answer with scores: {error}") from error
        reasons, unknown = tuple(body.reasons), tuple(body.unknown_nodes)
        return Scored(nodes, scores, ranking, level, reasons, body.model, body.weights, unknown, body.policy)

    def charge(self, pod: PodInfo, node: str, seconds: float) -> None:
        """Tell it where the pod will probably go. A scorer that cannot be told costs no answer: its scores are good."""
        try:
            self._post("/v1/charges", {"pod": pod_json(pod), "node": node, "seconds": seconds})
        except ScorerUnavailable as error:
            if not self._charges_fail:  # once, until it works again
                logger.warning("pods are placed without a provisional charge", extra={"why": str(error)})
            self._charges_fail = True
        else:
            self._charges_fail = False

    def _post(self, path: str, body: dict[str, Any]) -> bytes:
        url = self._remote.url.rstrip("/") + path
        try:
            response = self._pool.request("POST", url, body=msgspec.json.encode(body), headers=self._headers())
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:  # ValueError: a token that is no header
            raise ScorerUnavailable(f"the scorer {self._remote.url} does not answer: {_one_line(error)}") from error
        if response.status != 200:
            raise ScorerUnavailable(
                f"the scorer {self._remote.url} answered {response.status}: {response.data[:200]!r}"
            )
        return response.data

    def _headers(self) -> dict[str, str]:
        """Raises OSError, ValueError: the token cannot be read."""
        headers = {"Content-Type": "application/json"}
        if self._remote.token_file is not None:
            headers["Authorization"] = f"Bearer {self._remote.token_file.read_text(encoding='utf-8').strip()}"
        return headers


def _is_url(text: str) -> bool:
    try:
        url = urllib3.util.parse_url(text)
    except urllib3.exceptions.LocationParseError:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not any(map(str.isspace, text))


def _tls(remote: RemoteScorer) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=remote.ca)
        if remote.client_cert is not None:
            context.load_cert_chain(remote.client_cert, remote.client_key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"TLS files for the scorer {remote.url} cannot be used: {_one_line(error)}") from error
    return context


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]
