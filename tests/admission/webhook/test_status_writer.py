"""The writer of statuses with a made-up API server: how often it writes, and what it does when that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from admission.webhook.binding_status_writer import StatusWriter
from admission.webhook.binding_statuses import LastErrors
from admission.webhook.recorded_pods import RecordedPod, RecordedPods
from admission.webhook.template_store import TemplateStore
from kube.client.api_answer import NO_ANSWER, ApiAnswer
from kube.decoding.stored_templates import LastError
from tests.admission.webhook.made_up import a_binding, a_template

BINDINGS = "/apis/forecast-scheduler.io/v1alpha1/schedulerconfigbindings"
NOW = 1_795_284_000.0


class Scene:
    """A writer, what it writes to, and the clock it goes by. keeps: whether the API server keeps what is written."""

    def __init__(self, n_bindings: int = 1, *, keeps: bool = True) -> None:
        self.now, self.answer, self.keeps = NOW, 200, keeps
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.statuses: dict[str, dict[str, Any]] = {}
        self.store, self.pods, self.errors = TemplateStore(), RecordedPods(), LastErrors()
        self.counted = True
        self.store.node_configs.replace([a_template()])
        self.store.bindings.replace([a_binding(f"b-{i}") for i in range(n_bindings)])
        self.store.rebuild()
        self.store.ready = True
        self.writer = StatusWriter(
            self, self.store, self.pods, self.errors, synced=lambda: self.counted, clock=lambda: self.now
        )

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(asyncio.run(work))
        return done

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        assert method == "PATCH" and content_type == "application/merge-patch+json" and body is not None
        if self.answer == 0:
            return ApiAnswer(NO_ANSWER, text="no answer: gone")
        change = json.loads(body)["status"]
        self.written.append((path, change))
        if self.answer < 300 and self.keeps:
            name = path.split("/")[-2]
            self.statuses[name] = self.statuses.get(name, {}) | change
            make = a_binding if path.startswith(BINDINGS) else a_template
            objects: Any = self.store.bindings if path.startswith(BINDINGS) else self.store.node_configs
            objects.put(make(name, status=self.statuses[name]))
        return ApiAnswer(self.answer)

    def run(self, seconds: float, every: float = 0.5) -> None:
        until = self.now + seconds
        while self.now < until:
            self.writer.step()
            self.now += every

    def of_binding(self, name: str = "b-0") -> list[Mapping[str, Any]]:
        return [change for path, change in self.written if path == f"{BINDINGS}/{name}/status"]


def test_everything_is_written_once_and_counts_once_all_pods_are_listed() -> None:
    scene = Scene()
    scene.pods.put(RecordedPod("u-1", ("b-0",)))
    scene.run(60)
    assert len(scene.written) == 2
    assert scene.statuses["b-0"]["boundPods"] == 1
    assert scene.statuses["b-0"]["conditions"][0]["reason"] == "Applies"
    assert scene.statuses["pool"]["bindings"] == 1
    scene = Scene()
    scene.counted = scene.store.ready = False
    scene.run(5)
    assert not scene.written, "nor is anything written before the templates have been read"
    scene.store.ready = True
    scene.run(5)
    assert "boundPods" not in scene.statuses["b-0"] and "conditions" in scene.statuses["b-0"]
    scene.counted = True
    scene.run(5)
    assert scene.statuses["b-0"]["boundPods"] == 0


def test_one_that_changes_all_the_time_or_is_not_kept_is_written_now_and_then() -> None:
    scene = Scene()
    for i in range(100):
        scene.pods.put(RecordedPod(f"u-{i}", ("b-0",)))
        scene.run(0.2, every=0.2)
    assert 9 <= len(scene.of_binding()) <= 11  # in 20 s
    scene.run(5)
    assert scene.statuses["b-0"]["boundPods"] == 100
    scene = Scene(keeps=False)
    scene.run(100)
    assert len(scene.of_binding()) <= 4


def test_errors_are_told_once_and_then_forgotten() -> None:
    scene = Scene()
    scene.run(5)
    error = LastError("no node could", "shop/a", "2026-11-21T18:00:00Z")
    scene.errors.put("b-0", error)
    scene.errors.put("deleted", error)
    scene.run(10)
    assert scene.of_binding()[1:] == [{"lastError": {"message": error.message, "pod": "shop/a", "time": error.time}}]
    assert not scene.errors.pending()
    scene.errors.put("b-0", LastError("older", "shop/b", "2026-11-20T18:00:00Z"))  # of a replica that is slow
    scene.run(10)
    assert scene.statuses["b-0"]["lastError"]["pod"] == "shop/a" and not scene.errors.pending()


@pytest.mark.parametrize("answer", [403, 500, 0])
def test_a_failure_is_said_once_and_mended_later(answer: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="kube")
    scene = Scene(50)
    scene.answer = answer
    scene.run(20)
    said = len([r for r in caplog.records if "not written" in r.message])
    assert 1 <= said <= 2  # of each resource
    assert len(scene.written) <= 2 * 40  # one of each resource at each step: the others would fail as well
    scene.answer = 200
    scene.run(60)
    assert len(scene.statuses) == 51
    assert len([r for r in caplog.records if "written again" in r.message]) == said


def test_many_are_written_20_a_second_past_those_that_are_refused() -> None:
    scene = Scene(200)
    scene.run(5)
    assert 90 <= len(scene.written) <= 125
    scene.run(10)
    assert len(scene.statuses) == 201
    scene = Scene(50)
    for answer in (404, 422):
        scene.answer = answer
        scene.run(10)
        assert len({path for path, _ in scene.written}) == 51
        scene.written.clear()
        scene.now += 60
