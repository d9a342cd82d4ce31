"""A `PredictedLoad` filled at once."""

from __future__ import annotations

from forecast.arrays import AnyFloats
from scorer.predicted.load import PredictedLoad


def predicted_load(
    usage: AnyFloats, point_weights: AnyFloats, base: AnyFloats, capacity: AnyFloats, resource_weights: AnyFloats
) -> PredictedLoad:
    """Profiles (n_profiles, n_resources, n_points) and nodes with base (n_nodes, n_resources, n_points)."""
    load = PredictedLoad(point_weights, resource_weights)
    for curve in usage:
        load.add_profile(curve)
    for node in range(len(capacity)):
        load.set_node(node, capacity[node], base[node])
    return load
