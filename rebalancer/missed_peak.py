"""Hot half hours that come before the first moves of a plan can be made: no plan prevents them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster.predicted.node_load import PeakHours
from forecast.resources import HOT_RESOURCES
from rebalancer.cluster_layout import PredictedLoads, TablesCopy, load_with_moves
from rebalancer.planning.heat import hot_half_hours
from scorer.answers import Peak
from scorer.highest_peak import expected_peaks


@dataclass(frozen=True, slots=True)
class MissedPeak:
    """hot: node half hours over the hot share, expected; node: the fullest of them, and its expected peak until then"""

    hot: int
    node: str
    peak: Peak


def missed_peak(copied: TablesCopy, loads: PredictedLoads, ahead: int, hot: float) -> MissedPeak | None:
    """Return what is expected in the first `ahead` half hours; None = no node is hot in them.

    hot : share of its capacity above which a node is hot
    """
    resources = list(HOT_RESOURCES)
    capacity = copied.capacity[:, resources, None]
    share = np.nan_to_num(loads.load[:, resources, :ahead] / capacity)  # (n_nodes, n_hot, ahead)
    n_hot = hot_half_hours(share, hot) if share.size else 0
    if not n_hot:
        return None
    node = int(share.max(axis=(1, 2)).argmax())
    hours = PeakHours.between(copied.horizon, slice(copied.horizon.slot, copied.slots.start + ahead))
    (peak,) = expected_peaks(load_with_moves(copied, [node]), hours)
    return None if peak is None else MissedPeak(n_hot, copied.nodes[node], peak)
