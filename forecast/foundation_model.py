"""A pretrained forecasting model as a predictor; `onnx_model.py` loads it and asks it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.onnx_model import OnnxModel, load_model
from forecast.predictors.base import Predictor, filled_days

logger = logging.getLogger(__name__)


class FoundationModelPredictor(Predictor):
    """Not in the folder of the predictors: it exists only where `train.foundation_model` names a file.

    Each series is divided by its mean before the model sees it, and horizons beyond the model's own are rolled on. The
    predictor is pickled with its path only, so each worker process loads the file itself, once.

    path : an .onnx file or a directory that holds one (`onnx_model.py`)
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
        curves = np.zeros((len(self.level_), len(horizon) * SLOTS_PER_DAY))
        rows = np.flatnonzero(self.level_ > 0)
        curves[rows] = model.expected(self._answers(model, rows, curves.shape[1]))
        return curves.reshape(len(curves), len(horizon), SLOTS_PER_DAY)

    def _predict_quantiles(self, horizon: Days, levels: tuple[float, ...]) -> Floats | None:
        model = load_model(self.path)
        if len(model.levels) == 1:
            return None
        quantiles = np.zeros((len(self.level_), len(horizon) * SLOTS_PER_DAY, len(levels)))
        rows = np.flatnonzero(self.level_ > 0)
        quantiles[rows] = model.at_levels(self._answers(model, rows, quantiles.shape[1]), levels)
        return quantiles.reshape(len(quantiles), len(horizon), SLOTS_PER_DAY, len(levels))

    def _answers(self, model: OnnxModel, rows: Ints, n_slots: int) -> Floats:
        """Of those series, in their unit: (n_rows, n_quantiles, n_slots); last week stands for an answer of NaN."""
        if len(rows) == 0:
            return np.zeros((0, len(model.levels), n_slots))
        answers: Floats = self.level_[rows, None, None] * _rolled_on(model, self.context_[rows], n_slots)
        unanswered = np.flatnonzero(~np.isfinite(answers).all(axis=(1, 2)))
        for row in unanswered:
            answers[row] = np.resize(self.last_week_[rows[row]].reshape(-1), n_slots)
        if len(unanswered):
            logger.warning(
                "the foundation model answered NaN: last week is taken",
                extra={"path": str(self.path), "series": len(unanswered)},
            )
        return answers


def _rolled_on(model: OnnxModel, contexts: Floats, n_slots: int) -> Floats:
    """Answers one after the other, each of whose mean the next takes for measured: (n_series, n_quantiles, n_slots)."""
    seen, answers, n_answered = contexts, [], 0
    while n_answered < n_slots:
        answer = np.maximum(model.answer(seen), 0.0)
        answers.append(answer)
        n_answered += answer.shape[2]
        seen = np.concatenate([seen, model.expected(answer)], axis=1)[:, -contexts.shape[1] :]
    return np.concatenate(answers, axis=2)[:, :, :n_slots]
