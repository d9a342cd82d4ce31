"""Jobs that go on whatever happens to one of them, and when the scorer may say that it is ready."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from base.errors import InputError
from base.periodic_task import PeriodicTask
from cluster.model_watch import LoadedModel, ModelWatch
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from scorer.background import ScorerBackground
from tests.scorer.live_cluster import model, pod_of
from tests.scorer.scorer_at import LiveScorer

LONG = 20.0
"""Seconds after which a thread that was to do something is taken to be stuck."""


def test_a_job_that_raises_is_done_again_until_it_is_stopped() -> None:
    done, third = [], threading.Event()

    def job() -> None:
        done.append(1)
        if len(done) >= 3:
            third.set()
        raise ZeroDivisionError

    every = PeriodicTask("test", 0.01, job)
    every.start()
    assert third.wait(LONG)
    every.stop(LONG)
    assert not every._thread.is_alive()


def test_a_job_begins_when_it_may_and_survives_a_condition_that_raises() -> None:
    asked, done = [], threading.Event()

    def after() -> bool:
        asked.append(1)
        if len(asked) == 2:
            raise ZeroDivisionError
        return len(asked) > 3

    every = PeriodicTask("test", 0.01, done.set, after=after)
    every.start()
    assert done.wait(LONG)
    assert len(asked) == 4
    every.stop(LONG)


def test_a_job_that_fails_every_time_is_logged_less_and_less_often(caplog: pytest.LogCaptureFixture) -> None:
    enough, calls = threading.Event(), 0

    def fail() -> None:
        nonlocal calls
        calls += 1
        if calls == 11:
            return  # once it goes well, and what fails afterwards is news again
        if calls == 14:
            enough.set()
        raise ZeroDivisionError

    job = PeriodicTask("doomed", 0.0, fail)
    job.start()
    assert enough.wait(LONG)
    job.stop()
    assert [record.__dict__["failures"] for record in caplog.records][:6] == [1, 2, 4, 8, 1, 2]


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(str(tmp_path / "models"))


def published(registry: Registry) -> str:
    return registry.publish(artefact_of(model(), datetime(2026, 5, 19, tzinfo=UTC)))


def test_models_are_looked_for_once_the_cluster_is_read(registry: Registry) -> None:
    version = published(registry)
    polled, synced = threading.Event(), threading.Event()

    class Watch(ModelWatch):
        def poll(self, now: float) -> LoadedModel | None:
            assert synced.is_set()
            found = super().poll(now)
            polled.set()
            return found

    tested = LiveScorer(without_model=True)
    tested.state = lambda: (synced.is_set(), tested.clock.now, {"nodes": "listing"})
    with ScorerBackground(tested.scorer, Watch(registry), clock=tested.clock) as background:
        with pytest.raises(InputError, match=r"could not be read within 0 s \(nodes: listing; usage: .*API server"):
            background.wait_synced(0.0)
        assert not polled.wait(0.3)
        status = tested.scorer.status()
        assert (status.ready, status.not_ready_because) == (False, "the cluster has not been read completely yet")
        synced.set()
        background.wait_synced(LONG)
        assert polled.wait(LONG)
        _until(lambda: tested.scorer.status().ready)
    assert tested.scorer.score(pod_of(0, "x")).model_version == version


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(int(LONG / 0.05)):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it never came")


def test_readiness_waits_for_the_first_look_but_for_a_minute_at_most(registry: Registry) -> None:
    tested = LiveScorer(without_model=True)
    synced = [False]
    tested.state = lambda: (synced[0], tested.clock.now, {})
    background = ScorerBackground(tested.scorer, ModelWatch(registry), clock=tested.clock)
    assert not tested.scorer.status().ready
    tested.clock.now += 600  # reading a large cluster takes its time
    assert not tested.scorer.status().ready
    synced[0] = True
    assert tested.scorer.status().not_ready_because == "the model is being read"
    tested.clock.now += 59
    assert not tested.scorer.status().ready
    tested.clock.now += 2
    assert tested.scorer.status().ready
    tested.clock.now -= 7200  # a clock that is set back does not make it wait for hours
    assert tested.scorer.status().ready
    background.look_for_model()
    assert tested.scorer.status().ready


def test_a_model_that_cannot_be_put_in_place_leaves_the_one_before_and_says_why(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = LiveScorer()
    version = published(registry)
    background = ScorerBackground(tested.scorer, ModelWatch(registry), clock=tested.clock)

    def fail(_: LoadedModel) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(tested.scorer.tables, "install", fail)
        background.look_for_model()
    status = tested.scorer.status()
    assert status.model is not None
    assert status.model.version == "v1"
    assert status.refused_model == "MemoryError: no room"
    assert any("a newer model is refused: MemoryError" in reason for reason in status.reasons)
    tested.later(700)
    background.look_for_model()
    assert tested.scorer.score(pod_of(0, "x")).model_version == version
    assert tested.scorer.status().refused_model is None


def test_jobs_can_be_stopped_before_they_begin() -> None:
    done: list[int] = []
    every = PeriodicTask("test", 0.01, lambda: done.append(1), after=lambda: False)
    every.start()
    every.stop(LONG)
    assert not every._thread.is_alive()
    assert done == []
    PeriodicTask("never started", 1.0, lambda: None).stop()
