"""A pretrained forecasting model (Chronos-Bolt, Toto, TimesFM, one of your own) from a local ONNX file, checked
against our contract.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from base.arrays import Floats
from base.errors import InputError
from forecast.calendar import SLOTS_PER_DAY

# A forecasting model from a local ONNX file: found, checked against our contract, asked for a few series at a time.
#
# Nothing is downloaded. The contract, which docs/extend/foundation-models.md explains:
#
#     context   : float32 (n_series, context_length) half hours, oldest first, mean 1; missing values are NaN, or 0
#                 where the model has the input `mask`
#     mask      : optional, bool or float32 of the same shape, true where a value was measured
#     mean      : float (n_series, horizon) the half hours that follow; or
#     quantiles : float (n_series, n_quantiles, horizon), ascending; the file's metadata property `quantile_levels`
#                 names their levels ("0.1,0.5,0.9"), which are i / (n_quantiles + 1) without it

SHORTEST_CONTEXT = 7 * SLOTS_PER_DAY
"""Models of any context length see at least a week; what a shorter history lacks at its start is missing."""

_SERIES_AT_ONCE = 8
"""Series in one call. Seconds of CPU for a series, one thread, calls of 1, 8 and 16: a transformer of 16 tokens takes
0.062, 0.033, 0.030; Fracast, a convolution whose memory the cache no longer holds, 0.042, 0.044, 0.048."""

_SAME_ANSWER = 1e-3
"""Relative: a product of matrices rounds float32 differently in a batch; what differs more has mixed the series."""

LEVELS_PROPERTY = "quantile_levels"

_MASK_TYPES = {"tensor(bool)": np.bool_, "tensor(float)": np.float32}
_RANKS = {"mean": 2, "quantiles": 3}


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A loaded model that has answered once.

    session        : onnxruntime.InferenceSession
    context_length : half hours that it looks at, None = as many as there are
    mask_type      : of the input `mask`, None = missing values are NaN
    output         : `mean` or `quantiles`
    at_once        : most series in one call; 1 where the file declares a first axis of 1
    levels         : (n_quantiles,) ascending probabilities; the mean counts as one level
    """

    session: Any
    context_length: int | None
    mask_type: type[np.generic] | None
    output: str
    at_once: int
    levels: tuple[float, ...] = (0.5,)

    def answer(self, contexts: Floats) -> Floats:
        """The half hours that follow each series, ascending by level: (n_series, n_quantiles, horizon).

        contexts : (n_series, n_slots) oldest first, mean near 1, NaN = not measured
        """
        parts = [self._run(contexts[row : row + self.at_once]) for row in range(0, len(contexts), self.at_once)]
        output = np.concatenate(parts)
        return np.sort(output, axis=1) if self.output == "quantiles" else output[:, None]

    def expected(self, answer: Floats) -> Floats:
        """Mean of the answer: (n_series, n_quantiles, horizon) -> (n_series, horizon).

        A level stands for the probabilities that are nearer to it than to another level.
        """
        between = (np.array(self.levels[1:]) + np.array(self.levels[:-1])) / 2
        return np.asarray(np.einsum("q,rqs->rs", np.diff([0.0, *between, 1.0]), answer), dtype=np.float64)

    def at_levels(self, answer: Floats, levels: tuple[float, ...]) -> Floats:
        """The answer at other levels: (n_series, n_quantiles >= 2, horizon) -> (n_series, horizon, n_levels).

        Straight lines over the quantiles of a normal distribution, the outer ones go on: 0.99 lies above the 0.9 that
        is a model's last level.
        """
        known, wanted = ndtri(self.levels), ndtri(levels)
        right = np.clip(np.searchsorted(known, wanted), 1, len(known) - 1)
        share = (wanted - known[right - 1]) / (known[right] - known[right - 1])
        below, above = answer[:, right - 1], answer[:, right]
        return np.asarray(np.moveaxis(below + share[:, None] * (above - below), 1, -1), dtype=np.float64)

    def _run(self, contexts: Floats) -> Floats:
        """The output as it is, in one call."""
        length = self.context_length or max(contexts.shape[1], SHORTEST_CONTEXT)
        padded = np.full((len(contexts), length), np.nan, dtype=np.float32)
        known = contexts[:, -length:]
        padded[:, length - known.shape[1] :] = known
        inputs: dict[str, Any] = {"context": padded}
        if self.mask_type is not None:
            measured = np.isfinite(padded)
            inputs = {"context": np.where(measured, padded, np.float32(0)), "mask": measured.astype(self.mask_type)}
        return np.asarray(self.session.run([self.output], inputs)[0], dtype=np.float64)


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
    answers = _probe(model, file)
    return replace(model, levels=_levels(session, answers.shape[1], file)) if model.output == "quantiles" else model


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
                f"foundation model {file}: {one.name} takes {one.shape[0]} series at a time, it must take any number: "
                "export it with a dynamic first axis, or with 1"
            )
    outputs = {one.name for one in session.get_outputs()}
    output = next((name for name in _RANKS if name in outputs), None)
    if output is None:
        raise InputError(
            f"foundation model {file}: its outputs are {_names(outputs)}, one must be mean (n_series, horizon) or "
            "quantiles (n_series, n_quantiles, horizon); rename it at the export"
        )
    length = context.shape[1] if isinstance(context.shape[1], int) else None
    at_once = 1 if any(one.shape[0] == 1 for one in inputs.values()) else _SERIES_AT_ONCE
    return OnnxModel(session, length, None if mask is None else _MASK_TYPES[mask.type], output, at_once)


def _probe(model: OnnxModel, file: Path) -> Floats:
    """Ask for a made-up week with a gap and for a constant one, in one call if it takes two; the output of one series.

    Raises InputError.
    """
    slots = np.arange(SHORTEST_CONTEXT)
    daily = 1 + 0.5 * np.sin(2 * np.pi * slots / SLOTS_PER_DAY)
    weeks = {"a week with a gap": np.where(slots // SLOTS_PER_DAY == 4, np.nan, daily)}
    weeks["a constant week"] = np.ones(SHORTEST_CONTEXT)
    alone = [_probed(model, week[None], file) for week in weeks.values()]
    for what, output in zip(weeks, alone, strict=True):
        if not np.isfinite(output).all():
            raise InputError(
                f"foundation model {file}: it answers {what} with {np.mean(~np.isfinite(output)):.0%} NaN or infinity; "
                "it must take NaN in context as missing, or have the input mask"
            )
    if model.at_once > 1:
        together = _probed(model, np.stack(list(weeks.values())), file)
        if not np.allclose(together, np.concatenate(alone), rtol=_SAME_ANSWER, atol=_SAME_ANSWER):
            raise InputError(
                f"foundation model {file}: its answer for a series depends on the other series of the call; export it "
                "with a first axis of 1"
            )
    return alone[0]


def _probed(model: OnnxModel, contexts: Floats, file: Path) -> Floats:
    """The output, of the axes that the contract asks for. Raises InputError."""
    n_series = f"{len(contexts)} series" if len(contexts) > 1 else "one series"
    try:
        output = model._run(contexts)
    except Exception as error:  # as above
        raise InputError(
            f"foundation model {file}: it fails on {n_series} of {model.context_length or SHORTEST_CONTEXT} half hours "
            f"({_line(error)}); it must take any number of series and any whole number of days, or declare 1 as its "
            "first axis and its context_length as the second"
        ) from error
    if output.ndim != _RANKS[model.output] or output.shape[0] != len(contexts) or 0 in output.shape:
        axes = "(n_series, horizon)" if model.output == "mean" else "(n_series, n_quantiles, horizon)"
        raise InputError(
            f"foundation model {file}: {model.output} has the shape {output.shape} for {n_series}, it must be {axes}"
        )
    return output


def _levels(session: Any, n_quantiles: int, file: Path) -> tuple[float, ...]:
    """What the file says of its quantiles, or evenly spaced levels. Raises InputError."""
    said = session.get_modelmeta().custom_metadata_map.get(LEVELS_PROPERTY)
    if said is None:
        return tuple(float(level) for level in np.arange(1, n_quantiles + 1) / (n_quantiles + 1))
    try:
        levels = tuple(float(level) for level in said.split(","))
    except ValueError:
        levels = ()
    if len(levels) != n_quantiles or not (np.diff([0.0, *levels, 1.0]) > 0).all():
        raise InputError(
            f"foundation model {file}: its metadata property {LEVELS_PROPERTY} is {said!r}, it must name the levels of "
            f"its {n_quantiles} quantiles, above 0 and below 1, ascending, as in 0.1,0.5,0.9"
        )
    return levels


def _names(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"


def _line(error: Exception) -> str:
    """The first line of what onnxruntime says, which may be pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
