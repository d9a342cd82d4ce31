"""Tiny ONNX models with random weights, as an export of a pretrained one would declare its inputs and outputs."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper, save

from forecast.foundation_model import FoundationModelPredictor

WEEK = 336
HORIZON = 96
_HIDDEN = 8
_LARGEST = 2**62


def save_tiny_model(
    file: Path,
    *,
    seed: int = 0,
    context: str = "context",
    context_type: int = TensorProto.FLOAT,
    context_shape: Sequence[int | str] = ("n_series", "context_length"),
    mask: int | None = None,
    output: str = "mean",
    quantile_levels: str | None = None,
    gaps_are_missing: bool = True,
    extra_axis: bool = False,
    through: NodeProto | None = None,
) -> Path:
    """Last week's half hours, moved a little by a network with random weights of one hidden layer.

    mask             : type of the input `mask`, None = missing values are NaN
    output           : mean, or quantiles, or a name that is not in the contract
    quantile_levels  : metadata property of the three quantiles, None = without it
    gaps_are_missing : whether NaN is taken for missing; else it spreads
    extra_axis       : the answer has one axis too many
    through          : first node, from context to `values`; None = as it is. It may use the constants last_axis,
                       first_axis, rows_of_500 and one_week
    """
    rng = np.random.default_rng(seed)
    weights = {
        "hidden": rng.normal(0, WEEK**-0.5, (WEEK, _HIDDEN)),
        "out": rng.normal(0, 0.02, (_HIDDEN, HORIZON)),
        "one": np.ones(1),
        "quantile_steps": np.array([0.9, 1.0, 1.1]).reshape(1, 3, 1),
    }
    bounds = {"week_start": [-WEEK], "week_end": [_LARGEST], "day_end": [HORIZON - WEEK], "time": [1]}
    bounds |= {"last_axis": [2], "first_axis": [0], "rows_of_500": [-1, 500], "one_week": [1, WEEK]}
    stored = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    stored += [numpy_helper.from_array(np.array(value, dtype=np.int64), name) for name, value in bounds.items()]
    nodes = [
        through or helper.make_node("Identity", [context], ["values"]),
        helper.make_node("Slice", ["values", "week_start", "week_end", "time"], ["raw_week"]),
        *_without_gaps(mask, gaps_are_missing),
        helper.make_node("MatMul", ["week", "hidden"], ["inner"]),
        helper.make_node("Tanh", ["inner"], ["active"]),
        helper.make_node("MatMul", ["active", "out"], ["moved"]),
        helper.make_node("Slice", ["week", "week_start", "day_end", "time"], ["same_days"]),
        helper.make_node("Add", ["same_days", "moved"], ["expected"]),
    ]
    if output == "quantiles":
        nodes.append(helper.make_node("Unsqueeze", ["expected", "time"], ["one_quantile"]))
        nodes.append(helper.make_node("Mul", ["one_quantile", "quantile_steps"], [output]))
    elif extra_axis:
        nodes.append(helper.make_node("Unsqueeze", ["expected", "time"], [output]))
    else:
        nodes.append(helper.make_node("Identity", ["expected"], [output]))
    inputs = [helper.make_tensor_value_info(context, context_type, context_shape)]
    if mask is not None:
        inputs.append(helper.make_tensor_value_info("mask", mask, context_shape))
    axes = ("n_series", "n_quantiles", "horizon") if output == "quantiles" or extra_axis else ("n_series", "horizon")
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, axes)]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, stored)
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    if quantile_levels is not None:
        helper.set_model_props(model, {"quantile_levels": quantile_levels})
    checker.check_model(model)
    save(model, str(file))
    return file


def _without_gaps(mask: int | None, gaps_are_missing: bool) -> list[NodeProto]:
    """raw_week -> week: what is missing becomes the mean of the series, which is 1."""
    if mask is not None:
        return [
            helper.make_node("Slice", ["mask", "week_start", "week_end", "time"], ["mask_week"]),
            helper.make_node("Cast", ["mask_week"], ["measured"], to=TensorProto.BOOL),
            helper.make_node("Where", ["measured", "raw_week", "one"], ["week"]),
        ]
    if not gaps_are_missing:
        return [helper.make_node("Identity", ["raw_week"], ["week"])]
    return [
        helper.make_node("IsNaN", ["raw_week"], ["missing"]),
        helper.make_node("Where", ["missing", "one", "raw_week"], ["week"]),
    ]


@cache
def tiny_model(output: str = "mean") -> Path:
    """One such file for all tests of this process."""
    directory = Path(mkdtemp(prefix="tiny-foundation-model-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return save_tiny_model(directory / "model.onnx", output=output)


def tiny_predictor() -> FoundationModelPredictor:
    """Return it as a predictor that is not fitted yet."""
    return FoundationModelPredictor(path=tiny_model())


def tiny_quantile_predictor() -> FoundationModelPredictor:
    """Return one that says the quantiles 0.25, 0.5 and 0.75: 0.9, 1 and 1.1 times what `tiny_predictor` expects."""
    return FoundationModelPredictor(path=tiny_model("quantiles"))
