"""A plugin of another package: a class that keeps pods off nodes, scores nodes, or works before and after binding.

The package names the class by an entry point of the group `forecast_scheduler.plugins` (docs/extend/plugins.md). It is
asked about one pod with arrays over nodes, and answers with an array over the same nodes.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from base.arrays import Bools, Floats, Ints
from forecast.resources import RESOURCES
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView

_MILLI = 1000.0


class NodeArrays:
    """Nodes as a plugin sees them, one entry each; valid during the call. The pod sits on none of them."""

    def __init__(self, pod: PodInfo, view: ClusterView, rows: Ints) -> None:
        """rows: (n_nodes,) of the nodes asked about"""
        self._pod, self._rows = pod, rows
        self._view: ClusterView | None = view

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> list[str]:
        """Return the names of the nodes."""
        names = self._read().state.names
        return [names[row] for row in self._rows.tolist()]

    def labels(self, key: str) -> NDArray[np.str_]:
        """(n_nodes,) values of a label; '' = the node does not have it."""
        column = self._read().index.labels.column(key)
        values = np.array([*column.names, ""])
        return np.asarray(values[column.values[self._rows]])

    def allocatable(self, resource: str) -> Floats:
        """(n_nodes,) cores, bytes or counts that pods may request, by Kubernetes name such as cpu; 0 = none."""
        return self._units(self._read().state.allocatable_units, resource)

    def requested(self, resource: str) -> Floats:
        """(n_nodes,) what the pods of the nodes request, in the same units."""
        return self._units(self._read().state.requested_units, resource)

    @property
    def pods(self) -> Ints:
        """(n_nodes,) pods that sit there."""
        return np.array(self._read().state.pod_count[self._rows])

    def peak(self, resource: str) -> Floats:
        """(n_nodes,) placing load at its peak with the pod, as a share of capacity (PredictedPeak); NaN = not known.

        resource : cpu, memory, disk or another that is predicted
        """
        cluster, found = self._read().cluster, np.full(len(self._rows), np.nan)
        number = [one.name for one in RESOURCES].index(resource)
        if cluster.predicted is not None:
            shares = cluster.predicted.load.peak_with(cluster.profile(self._pod), number)
            is_known = (self._rows < len(shares)) & ~cluster.capacity_assumed[self._rows, number]
            found[is_known] = shares[self._rows[is_known]]
        return found

    def close(self) -> None:
        """The call is over: a plugin that still runs can read no tables that change meanwhile."""
        self._view = None

    def _read(self) -> ClusterView:
        if self._view is None:
            raise RuntimeError("the call that these nodes were for is over")
        return self._view

    def _units(self, columns: Ints, resource: str) -> Floats:
        kind = self._read().state.kinds.get(resource)
        if kind is None:
            return np.zeros(len(self._rows))
        return np.asarray(columns[self._rows, kind] / (_MILLI if resource == "cpu" else 1.0), dtype=np.float64)


class NoPluginSettings(BaseModel):
    """Of a plugin without settings."""


class NodePlugin:
    """Override what the plugin does: filter, score, pre_bind, post_bind. One object serves all threads of a process.

    name             : as explanations, events, metrics and settings show it
    settings_class   : pydantic model of its settings; the object is made with one of these
    reason           : words about a node that `filter` keeps the pod from
    on_error         : what becomes of a pod if a call raises, is late or answers with nonsense. fail: the pod waits,
                       with the error as its reason; skip: it is placed without the plugin
    seconds          : the longest call of filter and score. Pods wait for it: the tables are locked meanwhile
    binding_seconds  : the longest call of pre_bind and post_bind, which may ask a server
    reads_nodes_only : whether filter and score read names, labels and allocatable of nodes and what replicas of a pod
                       share, and nothing of other pods. Then replicas are placed together; else one by one
    """

    name: str
    settings_class: type[BaseModel] = NoPluginSettings
    reason: str = ""
    on_error: Literal["fail", "skip"] = "fail"
    seconds: float = 0.1
    binding_seconds: float = 10.0
    reads_nodes_only: bool = False

    def __init__(self, settings: Any) -> None:
        """settings: of `settings_class`, checked"""
        self.settings = settings

    def filter(self, pod: PodInfo, nodes: NodeArrays) -> Bools:
        """(n_nodes,) true = the pod may go there."""
        raise NotImplementedError

    def score(self, pod: PodInfo, nodes: NodeArrays) -> Floats | Ints:
        """(n_nodes,) 0..100, higher is better; of nodes that passed all filters."""
        raise NotImplementedError

    def pre_bind(self, pod: PodInfo, node: str) -> str:
        """Work before the pod is bound; '' = go on, else why it is not to be bound there. In a thread of its own."""
        raise NotImplementedError

    def post_bind(self, pod: PodInfo, node: str) -> None:
        """The pod is bound. In a thread of its own."""
        raise NotImplementedError
