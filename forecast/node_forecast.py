"""A model and the pods on the nodes, read together: the predicted load of every node."""

from __future__ import annotations

from datetime import date

import numpy as np

from forecast.arrays import AnyFloats
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import NodeLoad, node_load
from forecast.history import Placements
from forecast.model import PeakModel
from forecast.resources import RESOURCES

__all__ = ["node_forecast"]


def node_forecast(
    model: PeakModel, placements: Placements, days: tuple[date, ...], current_replicas: AnyFloats | None = None
) -> list[NodeLoad]:
    """Predicted load per resource, in the order of RESOURCES, each (n_nodes, n_days * 48).

    placements       : who sits where, in slots from midnight of days[0]; its indices are the model's
    current_replicas : (n_services,) pods that serve now; None = as many as at the cut-off
    """
    n_services, n_nodes, n_slots = len(model.services), len(model.nodes), len(days) * SLOTS_PER_DAY
    share = model.load_share(model.reference_replicas if current_replicas is None else current_replicas)[..., None]
    usage = model.usage_on_node(days, share[..., 0]).reshape(n_services, len(RESOURCES), n_slots)
    felt = model.correction[..., None] * share
    own = np.tile((model.own_std * felt) ** 2, (1, 1, len(days)))
    shared = np.tile((model.shared_std * felt) ** 2, (1, 1, len(days)))
    base = model.base(days).reshape(n_nodes, len(RESOURCES), n_slots)
    base_variance = np.tile(model.node_base_std.astype(np.float64) ** 2, (1, 1, len(days)))
    return [
        node_load(
            placements,
            usage[:, r],
            own[:, r],
            shared[:, r],
            base[:, r],
            base_variance[:, r],
            float(model.cluster_std[r]),
        )
        for r in range(len(RESOURCES))
    ]
