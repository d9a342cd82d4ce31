"""Usage of the nodes as last measured, from whatever measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.service_key import ServiceKey


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """One look at all nodes.

    nodes   : as the metrics name them: name, internal address or host name
    usage   : (n_nodes, n_resources) base units; NaN = not measured
    sampled : (n_nodes,) unix seconds of the last sample behind it; NaN = unknown
    """

    nodes: tuple[str, ...]
    usage: Floats
    sampled: Floats


class UsageSource(Protocol):
    """A source of usage. Raises base.errors.ForecastError if it cannot be read."""

    def read(self) -> NodeUsage:
        """Usage of all nodes now: a fixed number of requests, whatever the number of nodes."""

    def node_history(self, names: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of one node in half hours: (n_resources, n_slots), NaN = not measured.

        names : all names that metrics may know it by; since: the start of a half hour
        """

    def service_history(self, service: ServiceKey, pods: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of all pods of a service together in half hours: (n_resources, n_slots), NaN = not measured.

        pods : names of those that are there now
        """

    def pods(self, resource: str, names: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], float]:
        """Usage of some pods now, base units, by namespace and name; those that are not measured are left out."""


def usage_by_row(measured: NodeUsage, row_of: dict[str, int], n_rows: int) -> tuple[AnyFloats, AnyFloats]:
    """Usage (n_rows, n_resources) and time of the sample (n_rows,) in the order of the cluster's rows, NaN elsewhere.

    A node may come under several names, for instance its CPU by address (node-exporter) and its log bytes by name
    (kube-state-metrics): then what each of them knows counts, as of the older sample.

    row_of : by every name or address a node may be known by
    """
    usage = np.full((n_rows, measured.usage.shape[1]), np.nan)
    sampled = np.full(n_rows, np.nan)
    rows = np.array([row_of.get(name, -1) for name in measured.nodes], dtype=np.int64)
    known = rows >= 0
    np.fmax.at(usage, rows[known], measured.usage[known])
    np.fmin.at(sampled, rows[known], measured.sampled[known])
    return usage, sampled
