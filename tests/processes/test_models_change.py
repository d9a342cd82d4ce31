"""Models come, are damaged, and go while scores are asked for; and a scorer waits for its first one."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from testing.clusters.large_cluster import LargeCluster, large_cluster
from testing.processes.scenery import N_NODES, N_PODS, N_SERVICES, Scenery, publish
from testing.processes.scorer_process import Asker, ScorerProcess, eventually
from tests.processes.conftest import Started


def _version(scorer: ScorerProcess) -> str | None:
    model = scorer.get("/v1/status")["model"]
    return None if model is None else str(model["version"])


def _other_truth(cluster: Scenery, seed: int = 1) -> LargeCluster:
    return large_cluster(N_NODES, N_PODS, N_SERVICES, first_day=cluster.truth.model.first_day, seed=seed)


def test_a_new_model_is_used_without_a_dropped_request(start: Started, cluster: Scenery, models: Path) -> None:
    scorer = start()
    first = _version(scorer)
    with Asker(scorer.url, {"pod": cluster.pod("any")}, every=0.01) as asker:
        assert eventually(lambda: bool(asker.answers))
        second = publish(models, _other_truth(cluster))
        assert eventually(lambda: _version(scorer) == second)
        before = len(asker.answers)
        assert eventually(lambda: len(asker.answers) > before + 5)
    assert asker.failures == []
    assert [answer["model"] for answer in asker.answers if answer["model"] != first][-1] == second
    scores = {answer["model"]: answer["scores"] for answer in asker.answers}
    assert set(scores) == {first, second} and scores[first] != scores[second]
    assert scorer.get("/v1/self-check")["sound"]
    assert scorer.complaints == []


def _flip_a_byte(models: Path, version: str) -> None:
    array = models / version / "usage_dated.npy"
    content = bytearray(array.read_bytes())
    content[-100] ^= 1
    array.write_bytes(content)


def _truncate_the_manifest(models: Path, version: str) -> None:
    manifest = models / version / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-200])


def _lose_an_array(models: Path, version: str) -> None:
    (models / version / "own_std.npy").unlink()


def _foreign_pointer(models: Path, version: str) -> None:
    (models / "latest.json").write_text(json.dumps({"format": "something else", "version": version, "before": []}))


@pytest.mark.parametrize("damage", [_flip_a_byte, _truncate_the_manifest, _lose_an_array, _foreign_pointer])
def test_a_damaged_model_is_refused_and_the_old_one_stays(
    start: Started, cluster: Scenery, models: Path, tmp_path: Path, damage: Callable[[Path, str], None]
) -> None:
    scorer = start()
    good = _version(scorer)
    # Damaged elsewhere and moved into place at once: the scorer looks every second.
    aside = tmp_path / "aside"
    shutil.copytree(models, aside)
    bad = publish(aside, _other_truth(cluster))
    damage(aside, bad)
    with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
        shutil.copytree(aside / bad, models / bad)
        os.replace(shutil.copy(aside / "latest.json", models / "latest.new"), models / "latest.json")
        assert eventually(lambda: scorer.metric("forecast_model_refused") == 1)
        status = scorer.get("/v1/status")
        assert status["model"]["version"] == good and status["refused_model"]
        assert any("newer model is refused" in reason for reason in status["reasons"])
        third = publish(models, _other_truth(cluster, seed=2))
        assert eventually(lambda: _version(scorer) == third)
        assert eventually(lambda: scorer.metric("forecast_model_refused") == 0)
        assert eventually(lambda: asker.answers[-1]["model"] == third)
    assert asker.failures == []
    assert {answer["model"] for answer in asker.answers} == {good, third}
    assert len(scorer.complaints) == 1 and "model refused" in scorer.complaints[0], scorer.log


def test_a_registry_that_disappears_leaves_the_model_in_use(start: Started, cluster: Scenery, models: Path) -> None:
    scorer = start()
    good = _version(scorer)
    models.rename(models.with_name("gone"))
    with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
        assert eventually(lambda: scorer.metric("forecast_model_refused") == 1)
        before = len(asker.answers)
        assert eventually(lambda: len(asker.answers) > before + 20)
    assert asker.failures == [] and {answer["model"] for answer in asker.answers} == {good}
    assert "nothing is published" in scorer.get("/v1/status")["refused_model"]
    models.with_name("gone").rename(models)
    assert eventually(lambda: scorer.metric("forecast_model_refused") == 0)
    other = publish(models, _other_truth(cluster))
    assert eventually(lambda: _version(scorer) == other)


def test_without_any_model_requests_decide(start: Started, cluster: Scenery, models: Path) -> None:
    shutil.rmtree(models)
    scorer = start()
    scored = scorer.post("/v1/scores", {"pod": cluster.pod("any")})
    assert scored["level"] == 3 and scored["model"] is None and len(set(scored["scores"].values())) > 1
    assert "no model has been published" in scored["reasons"]
    version = publish(models, cluster.truth)
    assert eventually(lambda: scorer.post("/v1/scores", {"pod": cluster.pod("any")})["model"] == version)


def test_it_is_not_ready_before_its_model_is_read(start: Started, cluster: Scenery, models: Path) -> None:
    with _SlowStore(models) as store:
        scorer = start("--models", store.url, ready=False)
        body = {"pod": cluster.pod("any")}
        assert eventually(lambda: "model is being read" in scorer.http.get("/readyz").text)
        refused = scorer.http.post("/v1/scores", json=body)
        assert refused.status_code == 503 and "Retry-After" in refused.headers
        assert scorer.http.get("/healthz").status_code == 200
        assert scorer.get("/v1/status")["pods"] == N_PODS  # the cluster is known already
        store.answers.set()
        scorer.wait_ready()
        assert scorer.post("/v1/scores", body)["model"] == _version(scorer) is not None


class _SlowStore:
    """Models over HTTP, by a server that answers nothing until told to."""

    def __init__(self, models: Path) -> None:
        self.answers = answers = threading.Event()

        class Handler(SimpleHTTPRequestHandler):
            def parse_request(self) -> bool:
                answers.wait(60)
                return super().parse_request()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(models)))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *unused: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
