"""Which published model is used: a bad one is refused and told, and never takes the good one away."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from forecast.errors import StoreError
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from scorer.model_watch import ModelWatch
from tests.scorer.live_cluster import model


def publish(registry: Registry, hour: int = 1) -> str:
    return registry.publish(artefact_of(model(), datetime(2026, 5, 19, hour, tzinfo=UTC), {"resources": {"cpu": {}}}))


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(str(tmp_path / "models"))


def some_array(registry: Registry, version: str) -> Path:
    return next(Path(registry.url.removeprefix("file://"), version).glob("usage_dated*"))


def test_nothing_published_is_nothing_wrong_and_a_first_model_is_taken_once(registry: Registry) -> None:
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is None
    assert watch.refused is None
    version = publish(registry)
    taken = watch.poll(30.0)
    assert taken is not None
    assert (taken.version, taken.model.services, taken.backtest) == (
        version,
        model().services,
        {"resources": {"cpu": {}}},
    )
    assert watch.poll(60.0) is None


def test_a_newer_model_is_taken_and_a_rollback_too(registry: Registry) -> None:
    first = publish(registry, 1)
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is not None
    second = publish(registry, 2)
    taken = watch.poll(30.0)
    assert taken is not None
    assert taken.version == second
    registry.rollback(first)
    back = watch.poll(60.0)
    assert back is not None
    assert back.version == first


def test_a_corrupt_model_is_refused_and_taken_once_it_is_mended(registry: Registry) -> None:
    publish(registry, 1)
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is not None
    second = publish(registry, 2)
    array = some_array(registry, second)
    good = array.read_bytes()
    array.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert watch.poll(30.0) is None
    assert watch.refused is not None
    assert "altered since it was published" in watch.refused
    array.write_bytes(good)
    assert watch.poll(60.0) is None  # a damaged model of gigabytes is not read every half minute
    assert watch.refused is not None
    taken = watch.poll(700.0)
    assert taken is not None
    assert taken.version == second
    assert watch.refused is None


def test_a_refused_model_that_is_rolled_back_is_forgotten(registry: Registry) -> None:
    first = publish(registry, 1)
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is not None
    some_array(registry, publish(registry, 2)).unlink()
    assert watch.poll(30.0) is None
    assert watch.refused is not None
    registry.rollback(first)
    assert watch.poll(60.0) is None
    assert watch.refused is None


def test_a_refused_model_is_looked_at_again_although_the_clock_was_set_back(registry: Registry) -> None:
    version = publish(registry)
    array = some_array(registry, version)
    good = array.read_bytes()
    array.write_bytes(b"")
    watch = ModelWatch(registry)
    assert watch.poll(1e6) is None
    array.write_bytes(good)
    assert watch.poll(1e6 - 7200) is not None


def test_a_latest_json_that_cannot_be_read_is_refused(registry: Registry) -> None:
    publish(registry)
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is not None
    latest = Path(registry.url.removeprefix("file://"), "latest.json")
    good = latest.read_bytes()
    latest.write_bytes(b"{")
    assert watch.poll(30.0) is None
    assert watch.refused is not None
    latest.write_bytes(good)
    assert watch.poll(60.0) is None
    assert watch.refused is None


@pytest.mark.parametrize("where", ["latest", "load"])
@pytest.mark.parametrize("error", [StoreError("the store is away"), ZeroDivisionError("a foreign store")])
def test_a_store_that_fails_is_asked_again_and_keeps_what_is_in_use(
    registry: Registry, where: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, 1)
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is not None
    second = publish(registry, 2)

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(registry, where, fail)
        assert watch.poll(30.0) is None
        assert watch.refused is not None
        assert str(error) in watch.refused
    soon = watch.poll(60.0)
    if where == "load" and isinstance(error, ZeroDivisionError):
        assert soon is None  # nobody knows what that was: it is not tried every half minute
        soon = watch.poll(700.0)
    assert soon is not None
    assert soon.version == second


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
    assert watch.poll(60.0) is None
    assert watch.refused == because


def test_a_model_that_could_not_be_used_is_given_back_and_looked_at_again(registry: Registry) -> None:
    first = publish(registry, 1)
    watch = ModelWatch(registry)
    assert watch.poll(0.0) is not None
    publish(registry, 2)
    second = watch.poll(30.0)
    assert second is not None
    watch.give_back(second, "too large", 30.0)
    assert watch.refused == "too large"
    assert watch.poll(60.0) is None
    assert watch.refused == "too large"
    assert watch.poll(700.0) is not None
    watch.give_back(second, "too large", 700.0)
    registry.rollback(first)
    assert watch.poll(730.0) is None  # which is in use
    assert watch.refused is None
