"""Models from ONNX files: what keeps the contract is loaded and asked, what does not is refused with the way out."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from scipy.special import ndtri

from base.errors import InputError
from forecast.onnx_model import _loaded, load_model, model_digest
from tests.forecast.foundation.tiny_models import HORIZON, WEEK, save_tiny_model


def some_context(n_slots: int = 2 * WEEK) -> np.ndarray:
    return 1 + 0.5 * np.sin(2 * np.pi * np.arange(n_slots) / 48)


@pytest.mark.parametrize("output", ["mean", "quantiles"])
@pytest.mark.parametrize("mask", [None, TensorProto.BOOL, TensorProto.FLOAT])
def test_every_form_of_the_contract_gives_the_same_curve(tmp_path: Path, output: str, mask: int | None) -> None:
    context = some_context()
    context[-100:-60] = np.nan
    plain = load_model(save_tiny_model(tmp_path / "plain.onnx"))
    expected = plain.expected(plain.answer(context[None]))
    model = load_model(save_tiny_model(tmp_path / "other.onnx", output=output, mask=mask))
    np.testing.assert_allclose(model.expected(model.answer(context[None])), expected, rtol=1e-5)
    assert expected.shape == (1, HORIZON)


@pytest.mark.parametrize("shape", [("n_series", "context_length"), ("n_series", WEEK), (1, WEEK)])
def test_what_a_short_history_lacks_is_missing_at_its_start(tmp_path: Path, shape: tuple[int | str, int | str]) -> None:
    model = load_model(save_tiny_model(tmp_path / "model.onnx", context_shape=shape))
    short = some_context(48)
    padded = np.concatenate([np.full(WEEK - 48, np.nan), short])
    np.testing.assert_array_equal(model.answer(short[None]), model.answer(padded[None]))


class CountedSession:
    """Passes calls on to onnxruntime and keeps how many series each of them had."""

    def __init__(self, session: Any) -> None:
        self.session, self.n_series = session, list[int]()

    def run(self, outputs: list[str], inputs: dict[str, np.ndarray]) -> Any:
        self.n_series.append(len(inputs["context"]))
        return self.session.run(outputs, inputs)


@pytest.mark.parametrize(("first_axis", "calls"), [("n_series", [8, 8, 3]), (1, [1] * 19)])
def test_series_are_asked_for_in_calls_that_the_file_can_take(
    tmp_path: Path, first_axis: int | str, calls: list[int]
) -> None:
    contexts = some_context() * np.random.default_rng(0).uniform(0.5, 2, (19, 2 * WEEK))
    model = load_model(save_tiny_model(tmp_path / "model.onnx", context_shape=(first_axis, WEEK), output="quantiles"))
    counted = CountedSession(model.session)
    together = replace(model, session=counted).answer(contexts)
    assert counted.n_series == calls
    one_by_one = np.concatenate([model.answer(context[None]) for context in contexts])
    np.testing.assert_allclose(together, one_by_one, rtol=1e-5)


@pytest.mark.parametrize(
    ("said", "levels"),
    [(None, (0.25, 0.5, 0.75)), ("0.1,0.5,0.9", (0.1, 0.5, 0.9)), ("0.5, 0.9, 0.99", (0.5, 0.9, 0.99))],
)
def test_a_file_says_its_levels_or_they_are_evenly_spaced(
    tmp_path: Path, said: str | None, levels: tuple[float, ...]
) -> None:
    model = load_model(save_tiny_model(tmp_path / "model.onnx", output="quantiles", quantile_levels=said))
    assert model.levels == levels
    answer = model.answer(some_context()[None])
    np.testing.assert_allclose(model.at_levels(answer, levels), np.moveaxis(answer, 1, -1))


def test_other_levels_are_those_of_the_normal_distribution_that_the_model_says(tmp_path: Path) -> None:
    model = replace(load_model(save_tiny_model(tmp_path / "model.onnx")), levels=(0.1, 0.4, 0.9))
    normal = 5 + 2 * ndtri(model.levels).reshape(1, 3, 1)
    asked = (0.01, 0.1, 0.3, 0.5, 0.95, 0.99)
    np.testing.assert_allclose(model.at_levels(normal, asked)[0, 0], 5 + 2 * ndtri(asked))


def test_the_expected_value_weighs_a_level_by_the_probability_it_stands_for(tmp_path: Path) -> None:
    model = replace(load_model(save_tiny_model(tmp_path / "model.onnx")), levels=(0.2, 0.4, 0.9))
    answer = np.array([1.0, 10.0, 100.0]).reshape(1, 3, 1)
    assert model.expected(answer) == pytest.approx(0.3 * 1 + 0.35 * 10 + 0.35 * 100)


def test_a_directory_with_one_model_is_as_good_as_its_file(tmp_path: Path) -> None:
    file = save_tiny_model(tmp_path / "model.onnx")
    assert load_model(tmp_path) is load_model(file)
    assert model_digest(tmp_path) == model_digest(file)


def test_a_file_that_changes_is_loaded_again_and_has_another_digest(tmp_path: Path) -> None:
    file = save_tiny_model(tmp_path / "model.onnx", seed=1)
    before, digest = load_model(file).answer(some_context()[None]), model_digest(file)
    save_tiny_model(file, seed=2)
    os.utime(file, ns=(1, 1))
    assert np.abs(load_model(file).answer(some_context()[None]) - before).max() > 1e-3
    assert model_digest(file) != digest


def broken_file(file: Path) -> Path:
    file.write_bytes(b"no model")
    return file


def two_files(file: Path) -> Path:
    for name in ("large.onnx", "small.onnx"):
        save_tiny_model(file.with_name(name))
    return file.parent


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda file: file, "there is no such file or directory on this machine; name a local", id="path"),
        pytest.param(lambda file: file.parent, "the directory holds no file .*it must hold one", id="directory"),
        pytest.param(broken_file, "onnxruntime cannot load it .*export it to ONNX again", id="not a model"),
        pytest.param(
            lambda file: save_tiny_model(file, context="past_values"),
            "its inputs are past_values, allowed are context and, optional, mask; rename them",
            id="input",
        ),
        pytest.param(
            lambda file: save_tiny_model(file, output="forecast"),
            r"its outputs are forecast, one must be mean \(n_series, horizon\) or quantiles",
            id="output",
        ),
        pytest.param(
            lambda file: save_tiny_model(file, mask=TensorProto.INT64),
            r"mask is tensor\(int64\), it must be tensor\(bool\) or tensor\(float\)",
            id="type of the mask",
        ),
        pytest.param(
            lambda file: save_tiny_model(
                file,
                context_shape=("n_series", "context_length", 1),
                through=helper.make_node("Squeeze", ["context", "last_axis"], ["values"]),
            ),
            r"context has the shape .*, it must be \(n_series, context_length\)",
            id="rank of the input",
        ),
        pytest.param(
            lambda file: save_tiny_model(file, context_shape=(8, WEEK)),
            "context takes 8 series at a time, it must take any number: export it with a dynamic first axis, or with 1",
            id="batch",
        ),
        pytest.param(
            lambda file: save_tiny_model(file, extra_axis=True),
            rf"mean has the shape \(1, 1, {HORIZON}\) for one series, it must be \(n_series, horizon\)",
            id="rank of the output",
        ),
        pytest.param(
            lambda file: save_tiny_model(
                file, through=helper.make_node("Reshape", ["context", "rows_of_500"], ["values"])
            ),
            "it fails on one series of 336 half hours .*it must take any number of series and any whole number of days",
            id="length",
        ),
        pytest.param(
            lambda file: save_tiny_model(
                file, through=helper.make_node("Reshape", ["context", "one_week"], ["values"])
            ),
            "it fails on 2 series of 336 half hours .*or declare 1 as its first axis",
            id="takes one series only",
        ),
        pytest.param(
            lambda file: save_tiny_model(
                file, through=helper.make_node("CumSum", ["context", "first_axis"], ["values"])
            ),
            "its answer for a series depends on the other series of the call; export it with a first axis of 1",
            id="mixes series",
        ),
        *(
            pytest.param(
                lambda file, said=said: save_tiny_model(file, output="quantiles", quantile_levels=said),
                f"property quantile_levels is '{said}', it must name the levels of its 3 quantiles, above 0 and below",
                id=f"levels {said}",
            )
            for said in ("0.1,0.9", "0.9,0.5,0.1", "0,0.5,0.9", "low,middle,high")
        ),
        pytest.param(
            lambda file: save_tiny_model(file, gaps_are_missing=False),
            "it answers a week with a gap with 100% NaN or infinity; it must take NaN in context as missing, or have "
            "the input",
            id="NaN",
        ),
        pytest.param(
            lambda file: save_tiny_model(
                file,
                context_type=TensorProto.DOUBLE,
                through=helper.make_node("Cast", ["context"], ["values"], to=TensorProto.FLOAT),
            ),
            r"context is tensor\(double\), it must be tensor\(float\)",
            id="type of the input",
        ),
        pytest.param(two_files, r"holds 2 files \*.onnx \(large.onnx, small.onnx\), .*name the file", id="two models"),
    ],
)
def test_what_breaks_the_contract_is_refused(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    path = make(tmp_path / "model.onnx")
    with pytest.raises(InputError, match=message) as refused:
        load_model(path)
    assert str(refused.value).startswith(f"foundation model {path}")


def test_without_onnxruntime_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = save_tiny_model(tmp_path / "model.onnx")
    real_import = builtins.__import__

    def without_onnxruntime(name: str, *rest: Any, **named: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError(name)
        return real_import(name, *rest, **named)

    _loaded.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_onnxruntime)
    with pytest.raises(InputError, match=r"pip install 'forecast-scheduler\[foundation\]'"):
        load_model(file)
