"""How many cores and bytes of each node no request takes, by the live tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cluster.live_tables import LiveTables
from forecast.resources import CPU, MEMORY, RESOURCES


def free_on_nodes(tables: LiveTables) -> Mapping[str, tuple[float, float]]:
    """node -> cores and bytes; 0 where requests are above what is allocatable."""
    with tables.reading() as cluster:
        state = cluster.state
        columns = [state.kinds[RESOURCES[resource].name] for resource in (CPU, MEMORY)]
        free = np.maximum(state.allocatable - state.requested, 0.0)[:, columns]
        alive = state.alive
        return {
            name: (float(free[row, 0]), float(free[row, 1])) for name, row in state.row_of.items() if bool(alive[row])
        }
