"""How many like pods still fit on each node, counted ahead: by what they request, as NodeResourcesFit has it, and by
what filters say that count room of their own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeGuard

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Filter
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.plugins import CountsRoom

_UNLIMITED = 2**31 - 1


def room_for(pod: PodInfo, view: ClusterView, filters: Iterable[Filter], rows: Ints) -> Ints:
    """(n_nodes,) pods like this one that fit on nodes which pass all filters, one after the other.

    Where no filter counts there is no end to it.
    """
    filters = tuple(filters)
    fits = [one for one in filters if isinstance(one, NodeResourcesFit)]
    room = np.full(len(rows), _UNLIMITED, dtype=np.int64)
    state = view.state
    for one in fits:
        np.minimum(room, state.allocatable_units[rows, state.kinds["pods"]] - state.pod_count[rows], out=room)
        for kind, wanted in one.wanted(pod):
            column = state.kinds.get(kind)
            if column is None:
                continue  # offered by a DeviceClass: without one no node has passed
            allocatable = state.allocatable_units[rows, column]
            pods = (allocatable - state.requested_units[rows, column]) // wanted
            if kind in one.device_class_resources:
                pods = np.where(allocatable > 0, pods, _UNLIMITED)
            np.minimum(room, pods, out=room)
    for other in filters:
        if _counts_room(other):
            np.minimum(room, other.room(pod, view, rows), out=room)
    return room


def _counts_room(one: Filter) -> TypeGuard[CountsRoom]:
    return _is_counting(type(one))


@cache
def _is_counting(kind: type[Any]) -> bool:
    """Whether filters of a class count room: isinstance of a Protocol takes 20 us, and each batch asks two dozen."""
    return issubclass(kind, CountsRoom)
