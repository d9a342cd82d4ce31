"""Models from ONNX files: what keeps the contract is loaded and asked, what does not is refused with the way out."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from base.errors import InputError
from forecast.foundation_model import _loaded, load_model, model_digest
from tests.forecast.foundation.tiny_models import HORIZON, WEEK, save_tiny_model


def some_context(n_slots: int = 2 * WEEK) -> np.ndarray:
    return 1 + 0.5 * np.sin(2 * np.pi * np.arange(n_slots) / 48)


@pytest.mark.parametrize("output", ["mean", "quantiles"])
@pytest.mark.parametrize("mask", [None, TensorProto.BOOL, TensorProto.FLOAT])
def test_every_form_of_the_contract_gives_the_same_curve(tmp_path: Path, output: str, mask: int | None) -> None:
    context = some_context()
    context[-100:-60] = np.nan
    expected = load_model(save_tiny_model(tmp_path / "plain.onnx")).answer(context)
    model = load_model(save_tiny_model(tmp_path / "other.onnx", output=output, mask=mask))
    np.testing.assert_allclose(model.answer(context), expected, rtol=1e-5)
    assert expected.shape == (HORIZON,)


@pytest.mark.parametrize("shape", [("n_series", "context_length"), ("n_series", WEEK), (1, WEEK)])
def test_what_a_short_history_lacks_is_missing_at_its_start(tmp_path: Path, shape: tuple[int | str, int | str]) -> None:
    model = load_model(save_tiny_model(tmp_path / "model.onnx", context_shape=shape))
    short = some_context(48)
    padded = np.concatenate([np.full(WEEK - 48, np.nan), short])
    np.testing.assert_array_equal(model.answer(short), model.answer(padded))


def test_a_directory_with_one_model_is_as_good_as_its_file(tmp_path: Path) -> None:
    file = save_tiny_model(tmp_path / "model.onnx")
    assert load_model(tmp_path) is load_model(file)
    assert model_digest(tmp_path) == model_digest(file)


def test_a_file_that_changes_is_loaded_again_and_has_another_digest(tmp_path: Path) -> None:
    file = save_tiny_model(tmp_path / "model.onnx", seed=1)
    before, digest = load_model(file).answer(some_context()), model_digest(file)
    save_tiny_model(file, seed=2)
    os.utime(file, ns=(1, 1))
    assert np.abs(load_model(file).answer(some_context()) - before).max() > 1e-3
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
            "context takes 8 series at a time, it must take one: export it with a dynamic first axis",
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
            "it fails on a context of 336 half hours .*it must take any whole number of days",
            id="length",
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
