"""A pretrained forecasting model (Chronos-Bolt, Toto, TimesFM, one of your own) as a predictor among the others."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import ClassVar

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import SLOTS_PER_DAY, Days
from forecast.foundation.onnx_model import OnnxModel, load_model
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
