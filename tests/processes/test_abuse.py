"""Ten thousand requests that nobody should send, to the real scorer over a real cluster: it is right afterwards."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ScorerProcess, settings_of
from testing.servers.prometheus import PrometheusServer
from tests.processes.conftest import Started
from tests.serving.broken_bodies import mutated

NUMBERS: list[Any] = ["1e999", "-1", "0.1m", "9" * 300, "1Ei", "NaN", "", "∞", 5, None, True, ["1"], {"a": 1}, "1e-400"]
NAMES: list[Any] = ["node-00000.cluster.example", "", "x" * 300, "\x00", "ä", "../..", None, 7, [], "a/b/c", "\ud7ff"]


def bad_pod(rng: random.Random) -> dict[str, Any]:
    """A pod that may be anything in some of its fields, and is right in others."""
    container: dict[str, Any] = {
        "name": "main",
        "resources": {"requests": {rng.choice(["cpu", "memory", "nvidia.com/gpu", ""]): rng.choice(NUMBERS)}},
    }
    metadata: dict[str, Any] = {"name": rng.choice(NAMES), "namespace": rng.choice(NAMES)}
    if rng.random() < 0.3:
        metadata["annotations"] = {"forecast-scheduler.io/virtual-request": rng.choice(['{"cpu": "1"}', "{", "[]", 3])}
    if rng.random() < 0.3:
        kind = rng.choice(["ReplicaSet", "Job", "Node", "", None])
        metadata["ownerReferences"] = [{"kind": kind, "name": rng.choice(NAMES), "controller": True, "uid": "u"}]
    pod: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [container] * rng.choice([0, 1, 3])}}
    if rng.random() < 0.2:
        pod[rng.choice(["spec", "metadata", "status"])] = rng.choice(NUMBERS)
    return pod


def _question(rng: random.Random) -> dict[str, Any]:
    body: dict[str, Any] = {"pod": bad_pod(rng)}
    if rng.random() < 0.4:
        body["nodes"] = rng.choice(NAMES) if rng.random() < 0.2 else rng.choices(NAMES, k=rng.randrange(6))
    if rng.random() < 0.4:
        name = rng.choice(["predicted_peak", "least_allocated", "no_such_score"])
        body["weights"] = {name: rng.choice([1, 0, -1, "1", None, 1e300])}
    if rng.random() < 0.1:
        body["top"] = rng.choice([0, -1, 1, 10**30, "many"])
    return body


def _one(rng: random.Random, client: httpx.Client) -> httpx.Response:
    match rng.randrange(12):
        case 0 | 1 | 2 | 3:
            return client.post(f"/v1/{rng.choice(['scores', 'explain'])}", content=mutated(rng))
        case 4 | 5 | 6 | 7 | 8:
            return client.post(f"/v1/{rng.choice(['scores', 'explain'])}", json=_question(rng))
        case 9:
            parts = [str(rng.choice(NAMES)).replace("\x00", "%00") for _ in range(3)]
            return client.get(f"/v1/services/{'/'.join(parts)}/forecast")
        case 10:
            return client.get("/v1/heat-map", params={"top": rng.choice(NUMBERS), "resource": str(rng.choice(NAMES))})
        case _:
            # Announced longer than the limit, or longer than it is.
            return client.post("/v1/scores", content=b"[" * rng.choice([70_000, 1000, 10]))


def _abuse(scorer: ScorerProcess, cluster: Scenery, count: int) -> set[int]:
    rng, seen = random.Random(11), set()
    good = {"pod": cluster.pod("any")}
    before = scorer.post("/v1/scores", good)["scores"]
    for number in range(count):
        answer = _one(rng, scorer.http)
        # 405: a name with slashes or dots may turn a path into another
        assert answer.status_code in (200, 400, 404, 405, 413, 422), (number, answer.request, answer.text)
        if answer.status_code != 200:
            assert set(answer.json()) == {"error"}
        seen.add(answer.status_code)
    after = scorer.post("/v1/scores", good)["scores"]
    assert before.keys() == after.keys()
    # Half an hour may have begun meanwhile.
    assert max(abs(before[name] - after[name]) for name in before) < 20
    check = scorer.get("/v1/self-check")
    assert check["sound"], check["drift"]
    assert "Traceback" not in scorer.log, scorer.log[-3000:]
    assert len(scorer.complaints) <= 2, scorer.log
    return seen


def test_hundreds_of_bad_requests_change_nothing(
    start: Started, cluster: Scenery, prometheus: PrometheusServer
) -> None:
    scorer = start("--prometheus", prometheus.url, settings=settings_of(max_body_bytes=65_536))
    assert _abuse(scorer, cluster, 400) >= {200, 400, 404, 413, 422}


@pytest.mark.long
def test_ten_thousand_bad_requests_change_nothing(
    start: Started, cluster: Scenery, prometheus: PrometheusServer
) -> None:
    scorer = start("--prometheus", prometheus.url, settings=settings_of(max_body_bytes=65_536))
    _abuse(scorer, cluster, 10_000)
