"""Which published model is used: a bad one is refused and told, and never takes the good one away."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from base.errors import StoreError
from cluster.model_watch import ModelWatch
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from tests.scorer.live_cluster import model


def publish(registry: Registry, hour: int = 1) -> str:
    return registry.publish(artefact_of(model(), datetime(2026, 5, 19, hour, tzinfo=UTC), {"resources": {"cpu": {}}}))


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(str(tmp_path / "models"))


def watching(registry: Registry) -> tuple[ModelWatch, str]:
    """A watch that has taken the first model at 0, and its version."""
    first, watch = publish(registry, 1), ModelWatch(registry)
    assert taken(watch, 0.0) == first
    return watch, first


def taken(watch: ModelWatch, now: float) -> str | None:
    """Version of a model that is used from now on; None = none is."""
    found = watch.poll(now)
    return None if found is None else found.version


def some_array(registry: Registry, version: str) -> Path:
    return next(Path(registry.url.removeprefix("file://"), version).glob("usage_dated*"))


def test_nothing_published_is_nothing_wrong_and_a_first_model_is_taken_once(registry: Registry) -> None:
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is None and watch.refused is None
    version = publish(registry)
    found = watch.poll(30.0)
    assert found is not None
    assert (found.version, found.model.services) == (version, model().services)
    assert found.backtest == {"resources": {"cpu": {}}}
    assert watch.poll(60.0) is None


def test_a_corrupt_model_is_refused_and_taken_once_it_is_mended(registry: Registry) -> None:
    watch, _ = watching(registry)
    second = publish(registry, 2)
    array = some_array(registry, second)
    good = array.read_bytes()
    array.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert watch.poll(30.0) is None
    assert watch.refused is not None and "altered since it was published" in watch.refused
    array.write_bytes(good)
    assert watch.poll(60.0) is None  # a damaged model of gigabytes is not read every half minute
    assert watch.refused is not None
    assert taken(watch, 700.0) == second and watch.refused is None


def test_a_newer_model_is_taken_and_a_refused_one_forgotten_after_a_rollback(registry: Registry) -> None:
    watch, first = watching(registry)
    second = publish(registry, 2)
    assert taken(watch, 30.0) == second
    registry.rollback(first)
    assert taken(watch, 60.0) == first
    watch, first = watching(registry)
    some_array(registry, publish(registry, 2)).unlink()
    assert watch.poll(30.0) is None and watch.refused is not None
    registry.rollback(first)
    assert watch.poll(60.0) is None and watch.refused is None


def test_a_latest_json_that_cannot_be_read_is_refused(registry: Registry) -> None:
    watch, _ = watching(registry)
    latest = Path(registry.url.removeprefix("file://"), "latest.json")
    good = latest.read_bytes()
    latest.write_bytes(b"{")
    assert watch.poll(30.0) is None and watch.refused is not None
    latest.write_bytes(good)
    assert watch.poll(60.0) is None and watch.refused is None


@pytest.mark.parametrize("where", ["latest", "load"])
@pytest.mark.parametrize("error", [StoreError("the store is away"), ZeroDivisionError("a foreign store")])
def test_a_store_that_fails_is_asked_again_and_keeps_what_is_in_use(
    registry: Registry, where: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = watching(registry)
    second = publish(registry, 2)

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(registry, where, fail)
        assert watch.poll(30.0) is None
        assert watch.refused is not None and str(error) in watch.refused
    # Of another error nobody knows what it was: that is not tried every half minute.
    is_soon = where == "latest" or isinstance(error, StoreError)
    assert [taken(watch, 60.0), taken(watch, 700.0)] == ([second, None] if is_soon else [None, second])


def test_why_a_model_is_refused_is_still_told_after_the_store_was_away(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_array(registry, publish(registry)).unlink()
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is None
    because = watch.refused

    def fail() -> None:
        raise StoreError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(registry, "latest", fail)
        watch.poll(30.0)
        assert watch.refused == "the store is away"
    assert watch.poll(60.0) is None and watch.refused == because


def test_a_refused_model_is_looked_at_again_and_given_back(registry: Registry) -> None:
    array = some_array(registry, publish(registry))
    good = array.read_bytes()
    array.write_bytes(b"")
    watch = ModelWatch(registry)
    assert watch.poll(1e6) is None
    array.write_bytes(good)
    assert watch.poll(1e6 - 7200) is not None
    watch, first = watching(registry)
    publish(registry, 2)
    second = watch.poll(30.0)
    assert second is not None
    watch.give_back(second, "too large", 30.0)
    assert watch.poll(60.0) is None and watch.refused == "too large"
    assert watch.poll(700.0) is not None
    watch.give_back(second, "too large", 700.0)
    registry.rollback(first)
    assert watch.poll(730.0) is None and watch.refused is None  # the first is in use
