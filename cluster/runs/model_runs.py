"""Run lengths that the trainer has learned from history, as the model publishes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cluster.runs.run_times import SHORTEST_RUN
from forecast.model import PeakModel
from forecast.run_length import RunEstimate
from forecast.service_key import ServiceKey


def model_runs(model: PeakModel) -> Mapping[ServiceKey, RunEstimate]:
    """The run lengths of all services of which a model knows them; a model from before they were learned knows none."""
    known = np.flatnonzero((model.run_count > 0) & np.isfinite(model.run_seconds).all(axis=1))
    return {
        model.services[row]: RunEstimate(max(typical, SHORTEST_RUN), max(typical, long, SHORTEST_RUN), round(count))
        for row, (typical, long), count in zip(
            known.tolist(), model.run_seconds[known].tolist(), model.run_count[known].tolist(), strict=True
        )
    }
