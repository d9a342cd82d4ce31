"""How many like pods still fit on each node, counted ahead by what filters say that count room."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Filter
from placement.filters.node_resources_fit import UNLIMITED


def room_for(pod: PodInfo, view: ClusterView, filters: Iterable[Filter], rows: Ints) -> Ints:
    """(n_nodes,) pods like this one that fit on nodes which pass all filters, one after the other.

    Where no filter counts there is no end to it.
    """
    room = np.full(len(rows), UNLIMITED, dtype=np.int64)
    for one in filters:
        if (left := one.room(pod, view, rows)) is not None:
            np.minimum(room, left, out=room)
    return room
