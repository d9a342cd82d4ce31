"""A model that no cluster can have is refused by name, or else every answer made from it is a sound number."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from base.errors import InputError
from cluster.model_watch import ModelWatch
from forecast.artefact import Array, Artefact, CorruptArtefact, manifest_from_bytes, manifest_to_bytes
from forecast.history import History
from forecast.hot_share import HOT_SHARE
from forecast.model import PeakModel
from forecast.model_artefact import ARRAYS, artefact_of, model_of
from forecast.published_models import Registry
from scorer.service.app import create_app
from testing.app_client import AppClient
from tests.scorer.live_cluster import loaded, model, pod_of
from tests.scorer.scorer_at import LiveScorer
from tests.synthetic import synthetic_history
from trainer.nightly import train_and_publish

NOW = datetime(2026, 5, 19, 2, tzinfo=UTC)

Made = tuple[str, Callable[[], Artefact]]


def _everywhere(value: float) -> Callable[[Array], Array]:
    return lambda array: np.full_like(array, value)


def _once(value: float) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        array = array.copy()
        array.reshape(-1)[array.size // 2] = value
        return array

    return change


CHANGES: dict[str, Callable[[Array], Array]] = {
    **{f"all {v}": _everywhere(v) for v in (math.nan, math.inf, -math.inf, -1.0, 0.0, 0.5, 1e-30, 1e6, 1e12, 3e38)},
    **{f"one {v}": _once(v) for v in (math.nan, math.inf, -math.inf, -1e-3, -1e9, 0.0, 1e6, 1e12, 1e20, 3e38, -3e38)},
    "negated": lambda array: -array,
    "times a million": lambda array: array * np.float32(1e6),
    "halved": lambda array: array / np.float32(2),
    "backwards": lambda array: array[..., ::-1].copy(),
    "first axis backwards": lambda array: array[::-1].copy(),
    "one shorter": lambda array: array[:-1],
    "one longer": lambda array: np.concatenate([array, array[:1]]),
    "empty": lambda array: array[:0],
    "last axis cut": lambda array: array[..., :-1],
    "axes swapped": lambda array: array.T,
    "an axis more": lambda array: array[None],
    "float64": lambda array: array.astype(np.float64),
    "integers": lambda array: np.nan_to_num(array).astype(np.int32),
}
VALUES: tuple[Any, ...] = (
    None, -1, 0, 10**400, math.nan, math.inf, "", " ", "x", [], {}, [""], ["a", "a"], "9999-12-31", "0001-01-01",
    "2026-05-21", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00",
)  # fmt: skip


def _with_array(good: Artefact, name: str, change: Callable[[Array], Array]) -> Artefact:
    return Artefact(good.manifest, {**good.arrays, name: change(np.asarray(good.arrays[name]))})


def _with_field(good: Artefact, change: Callable[[dict[str, Any]], None]) -> Artefact:
    document = json.loads(manifest_to_bytes(good.manifest))
    change(document)
    return Artefact(manifest_from_bytes(json.dumps(document).encode()), good.arrays)


def _set(field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update({field: value})


def mutants() -> list[Made]:
    good = artefact_of(model(), NOW)
    made: list[Made] = []
    for spec in ARRAYS:
        for words, change in CHANGES.items():
            made.append((f"{spec.name}: {words}", lambda s=spec, c=change: _with_array(good, s.name, c)))  # type: ignore[misc]
    for field in json.loads(manifest_to_bytes(good.manifest)):
        for value in VALUES:
            change_field = _set(field, value)
            made += [(f"{field} = {str(value)[:20]!r}", lambda c=change_field: _with_field(good, c))]  # type: ignore[misc]
    for axis in good.manifest.axes:
        for length in (0, 1, 49):
            change_axis = lambda document, a=axis, n=length: document["axes"].update({a: n})  # noqa: E731
            made.append((f"axis {axis} = {length}", lambda c=change_axis: _with_field(good, c)))  # type: ignore[misc]
    return made


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from numbers_in(entry)
    elif isinstance(value, int | float):
        yield float(value)


def assert_answers_are_sound(of: PeakModel) -> None:
    seated = [pod_of(i % 6, f"p-{i}", f"node-{i % 4}") for i in range(8)]
    tested = LiveScorer(pods=seated, model=loaded(of))
    tested.measure_as_expected()
    pod = {
        "metadata": {"namespace": "shop", "name": "new"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1"}}}]},
    }
    with AppClient(create_app(tested.scorer, hot=HOT_SHARE)) as asked:
        for path in (
            "/v1/status",
            "/v1/nodes",
            "/v1/nodes/node-0/forecast",
            "/v1/services",
            "/v1/services/shop/Deployment/service-0/forecast",
            "/v1/virtual-available",
            "/v1/heat-map",
            "/v1/self-check",
        ):
            answer = asked.get(path)
            assert answer.status_code == 200, (path, answer.text)
            assert all(map(math.isfinite, numbers_in(answer.json()))), path
        metrics = asked.get("/metrics")
        assert metrics.status_code == 200, metrics.text
        for body in ({"pod": {"namespace": "shop", "name": "p-0"}}, {"pod": pod}):
            answer = asked.post("/v1/scores", json=body)
            assert answer.status_code == 200, answer.text
            assert all(0 <= score <= 100 for score in answer.json()["scores"].values()), answer.text
            assert asked.post("/v1/explain", json=body).status_code == 200


def assert_refused_or_sound(words: str, make: Callable[[], Artefact]) -> bool:
    """Whether it is refused."""
    try:
        found = model_of(make(), NOW)
    except InputError:
        return True
    try:
        assert_answers_are_sound(found)
    except Exception as error:
        raise AssertionError(f"accepted, but: {words}") from error
    return False


def test_some_impossible_models_are_refused_or_answer_soundly() -> None:
    every = mutants()
    refused = [assert_refused_or_sound(*made) for made in random.Random(21).sample(every, 60)]
    assert sum(refused) > 30


@pytest.mark.long
def test_every_impossible_model_is_refused_or_answers_soundly() -> None:
    every = mutants()
    assert len(every) > 900
    refused = [assert_refused_or_sound(*made) for made in every]
    print(f"{sum(refused)} of {len(refused)} refused")
    assert sum(refused) > 600


def _negative(of: PeakModel) -> PeakModel:
    return replace(of, usage_dated=-of.usage_dated, usage_day_type=-of.usage_day_type)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda of: replace(of, first_day=date(9999, 12, 31)), r"trained_until is 9999-12-30, allowed is up to"),
        (_negative, r"usage_dated is -.* \(service shop/Deployment/.*\), allowed is 0 to"),
        (
            lambda of: replace(of, node_base=of.node_capacity[:, :, None, None] * 1.07 + 0 * of.node_base),
            r"node_base is",
        ),
    ],
)
def test_an_impossible_model_never_takes_the_good_one_away(
    change: Callable[[PeakModel], PeakModel], words: str, tmp_path: Path
) -> None:
    registry = Registry(str(tmp_path))
    watch = ModelWatch(registry)
    good = registry.publish(artefact_of(model(), NOW))
    first = watch.poll(0.0)
    assert first is not None and first.version == good
    bad = registry.publish(artefact_of(change(model()), NOW))
    assert watch.poll(30.0) is None
    assert watch.refused is not None and watch.refused.startswith(f"model {bad} is not possible: ")
    with pytest.raises(CorruptArtefact, match=words):
        model_of(registry.load(), NOW)
    alone = ModelWatch(registry)  # starts with only the refused one: as without a model
    assert alone.poll(0.0) is None and alone.refused is not None


def test_the_trainer_publishes_nothing_that_would_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = synthetic_history(n_days=15)
    registry = Registry(str(tmp_path))

    def fit_nonsense(known: History, *arguments: object, **options: object) -> PeakModel:
        good = model()
        return replace(good, predictor_weights=good.predictor_weights / np.float32(2))

    monkeypatch.setattr("trainer.nightly.fit", fit_nonsense)
    with pytest.raises(CorruptArtefact, match="model not published yet is not possible: predictor_weights of a serv"):
        train_and_publish(history, registry, now=NOW)
    assert registry.versions() == []


def test_forecasts_beyond_what_a_node_can_hold_are_published_held_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One service must not keep the model of all others from being published. It reproduces nothing: it is forced."""

    def fit_much(known: History, *arguments: object, **options: object) -> PeakModel:
        usage = model().usage_dated.copy()
        usage[0] *= np.float32(1e6)
        return replace(model(), usage_dated=usage, correction=model().correction * np.float32(1e6))

    monkeypatch.setattr("trainer.nightly.fit", fit_much)
    night = train_and_publish(synthetic_history(n_days=15), Registry(str(tmp_path)), now=NOW, force=True)
    published = model_of(Registry(str(tmp_path)).load(), NOW)
    assert night.published and published.correction.max() <= 1_000
    np.testing.assert_array_equal(published.usage_dated[1:], model().usage_dated[1:])
    assert np.isfinite(published.usage_dated).all()
