"""Whether there is a forecast that decisions may rest on."""

from __future__ import annotations

from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tracking import TrackedCluster


def usable_forecast(cluster: TrackedCluster) -> PredictedCluster | None:
    """None = there is no model, or one past its time (cluster/degradation.py)."""
    predicted = cluster.predicted
    if predicted is None:
        return None
    model = predicted.profiles.model
    age = cluster.now - model.calendar.midnight(model.first_day).timestamp()
    return predicted if age <= cluster.options.ladder.oldest_model else None
