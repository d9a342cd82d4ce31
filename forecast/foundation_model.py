"""A pretrained forecasting model (Chronos-Bolt, Toto, TimesFM, one of your own) from a local ONNX file, checked
against our contract, as a predictor.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats
from base.errors import InputError
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.predictors.base import Predictor, filled_days

# A forecasting model from a local ONNX file: found, checked against our contract, asked for one series at a time.
#
# Nothing is downloaded. The contract, which docs/extend/foundation-models.md explains:
#
#     context   : float32 (n_series, context_length) half hours, oldest first, mean 1; missing values are NaN, or 0
# where
#                 the model has the input `mask`
#     mask      : optional, bool or float32 of the same shape, true where a value was measured
#     mean      : float (n_series, horizon) the half hours that follow; or
#     quantiles : float (n_series, n_quantiles, horizon), whose average is the expected value

SHORTEST_CONTEXT = 7 * SLOTS_PER_DAY
"""Models of any context length see at least a week; what a shorter history lacks at its start is missing."""

_MASK_TYPES = {"tensor(bool)": np.bool_, "tensor(float)": np.float32}
_RANKS = {"mean": 2, "quantiles": 3}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A loaded model that has answered once.

    session        : onnxruntime.InferenceSession
    context_length : half hours that it looks at, None = as many as there are
    mask_type      : of the input `mask`, None = missing values are NaN
    output         : `mean` or `quantiles`
    """

    session: Any
    context_length: int | None
    mask_type: type[np.generic] | None
    output: str

    def answer(self, context: Floats) -> Floats:
        """The half hours that follow one series: (horizon,).

        context : (n_slots,) oldest first, mean near 1, NaN = not measured
        """
        return self._expected(self._run(context))

    def _run(self, context: Floats) -> Floats:
        """The output as it is, for a batch of one."""
        length = self.context_length or max(len(context), SHORTEST_CONTEXT)
        padded = np.full((1, length), np.nan, dtype=np.float32)
        known = context[-length:]
        padded[0, length - len(known) :] = known
        inputs: dict[str, Any] = {"context": padded}
        if self.mask_type is not None:
            measured = np.isfinite(padded)
            inputs = {"context": np.where(measured, padded, np.float32(0)), "mask": measured.astype(self.mask_type)}
        return np.asarray(self.session.run([self.output], inputs)[0], dtype=np.float64)

    def _expected(self, output: Floats) -> Floats:
        return np.asarray(output[0] if self.output == "mean" else output[0].mean(axis=0), dtype=np.float64)


def load_model(path: Path) -> OnnxModel:
    """Load a model and check that it keeps the contract; kept in memory until the file changes. Raises InputError.

    path : an .onnx file, or a directory that holds one
    """
    file = _model_file(path)
    facts = file.stat()
    return _loaded(file, facts.st_mtime_ns, facts.st_size)


def model_digest(path: Path) -> str:
    """SHA-256 of the model's file: another model finds the weights of all predictors anew. Raises InputError."""
    with _model_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _model_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.exists():
        raise InputError(
            f"foundation model {path}: there is no such file or directory on this machine; name a local .onnx file or "
            "a directory that holds one. Nothing is downloaded, and every worker needs the same path"
        )
    found = sorted(path.glob("*.onnx"))
    if len(found) != 1:
        what = f"{len(found)} files *.onnx ({', '.join(one.name for one in found)})" if found else "no file *.onnx"
        raise InputError(f"foundation model {path}: the directory holds {what}, it must hold one: name the file itself")
    return found[0]


@lru_cache(maxsize=1)
def _loaded(file: Path, changed: int, size: int) -> OnnxModel:
    """changed, size: of the file, so that a long-lived worker sees a new one."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(
            "a foundation model needs the extra: pip install 'forecast-scheduler[foundation]', or unset "
            "train.foundation_model"
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # pieces of a fit run side by side already
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base below Exception
        raise InputError(
            f"foundation model {file}: onnxruntime cannot load it ({_line(error)}); export it to ONNX again, with "
            "operators of ONNX alone"
        ) from error
    model = _checked(session, file)
    _probe(model, file)
    return model


def _checked(session: Any, file: Path) -> OnnxModel:
    """What the file declares of its inputs and outputs."""
    inputs = {one.name: one for one in session.get_inputs()}
    if "context" not in inputs or not set(inputs) <= {"context", "mask"}:
        raise InputError(
            f"foundation model {file}: its inputs are {_names(inputs)}, allowed are context and, optional, mask; "
            "rename them at the export"
        )
    context, mask = inputs["context"], inputs.get("mask")
    if context.type != "tensor(float)":
        raise InputError(f"foundation model {file}: context is {context.type}, it must be tensor(float), float32")
    if mask is not None and mask.type not in _MASK_TYPES:
        raise InputError(f"foundation model {file}: mask is {mask.type}, it must be {' or '.join(_MASK_TYPES)}")
    for one in inputs.values():
        if len(one.shape) != 2:
            raise InputError(
                f"foundation model {file}: {one.name} has the shape {one.shape}, it must be (n_series, context_length)"
            )
        if isinstance(one.shape[0], int) and one.shape[0] != 1:
            raise InputError(
                f"foundation model {file}: {one.name} takes {one.shape[0]} series at a time, it must take one: export "
                "it with a dynamic first axis"
            )
    outputs = {one.name for one in session.get_outputs()}
    output = next((name for name in _RANKS if name in outputs), None)
    if output is None:
        raise InputError(
            f"foundation model {file}: its outputs are {_names(outputs)}, one must be mean (n_series, horizon) or "
            "quantiles (n_series, n_quantiles, horizon); rename it at the export"
        )
    length = context.shape[1] if isinstance(context.shape[1], int) else None
    return OnnxModel(session, length, None if mask is None else _MASK_TYPES[mask.type], output)


def _probe(model: OnnxModel, file: Path) -> None:
    """Ask for a made-up week with a gap, and for a constant one."""
    slots = np.arange(SHORTEST_CONTEXT)
    daily = 1 + 0.5 * np.sin(2 * np.pi * slots / SLOTS_PER_DAY)
    with_gap = np.where(slots // SLOTS_PER_DAY == 4, np.nan, daily)
    for what, context in (("a week with a gap", with_gap), ("a constant week", np.ones(SHORTEST_CONTEXT))):
        try:
            output = model._run(context)
        except Exception as error:  # as above
            raise InputError(
                f"foundation model {file}: it fails on a context of {model.context_length or SHORTEST_CONTEXT} half "
                f"hours ({_line(error)}); it must take any whole number of days, or declare its context_length"
            ) from error
        if output.ndim != _RANKS[model.output] or output.shape[0] != 1 or 0 in output.shape:
            axes = "(n_series, horizon)" if model.output == "mean" else "(n_series, n_quantiles, horizon)"
            raise InputError(
                f"foundation model {file}: {model.output} has the shape {output.shape} for one series, it must be "
                f"{axes}"
            )
        if not np.isfinite(output).all():
            raise InputError(
                f"foundation model {file}: it answers {what} with {np.mean(~np.isfinite(output)):.0%} NaN or infinity; "
                "it must take NaN in context as missing, or have the input mask"
            )


def _names(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"


def _line(error: Exception) -> str:
    """The first line of what onnxruntime says, which may be pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


class FoundationModelPredictor(Predictor):
    """Not in the folder of the predictors: it exists only where `train.foundation_model` names a file.

    Each series is divided by its mean before the model sees it, and horizons beyond the model's own are rolled on. The
    predictor is pickled with its path only, so each worker process loads the file itself, once.

    path : an .onnx file or a directory that holds one (`foundation_model.py`)
    """

    name: ClassVar[str] = "foundation_model"
    expensive: ClassVar[bool] = True

    def __init__(self, *, path: Path) -> None:
        self.path = path

    def _fit(self, usage: AnyFloats, days: Days) -> None:
        slots = usage.reshape(len(usage), -1).astype(np.float64)
        known = np.isfinite(slots)
        mean = np.where(known, slots, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        self.level_ = mean  # (n_series,) 0 = nothing was measured, or nothing used
        self.context_ = slots / np.where(mean > 0, mean, 1.0)[:, None]
        self.last_week_ = filled_days(usage)[:, -7:]

    def _predict_curve(self, horizon: Days) -> Floats:
        model = load_model(self.path)
        n_slots = len(horizon) * SLOTS_PER_DAY
        curves = np.zeros((len(self.level_), n_slots))
        n_unanswered = 0
        # One at a time: in a batch a product of matrices rounds differently, and a forecast would depend on the others.
        for row in np.flatnonzero(self.level_ > 0):
            curve = self.level_[row] * _rolled_on(model, self.context_[row], n_slots)
            if not np.isfinite(curve).all():
                n_unanswered += 1
                curve = np.resize(self.last_week_[row].reshape(-1), n_slots)
            curves[row] = curve
        if n_unanswered:
            logger.warning(
                "the foundation model answered NaN: last week is taken",
                extra={"path": str(self.path), "series": n_unanswered},
            )
        return curves.reshape(len(curves), len(horizon), SLOTS_PER_DAY)


def _rolled_on(model: OnnxModel, context: Floats, n_slots: int) -> Floats:
    """Answers one after the other, each of which the next takes for measured: (n_slots,)."""
    seen = context
    curve = np.empty(0)
    while len(curve) < n_slots:
        answer = np.maximum(model.answer(seen), 0.0)
        curve = np.concatenate([curve, answer])
        seen = np.concatenate([seen, answer])[-len(context) :]
    return curve[:n_slots]
