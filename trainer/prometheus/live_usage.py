"""What nodes use right now, and what a node or a service used in the last days: for services that place pods.

A look at all nodes takes one query for what recording rules have (forecast:node_usage), one for each resource they do
not have, and one for the time of the samples: at most seven, whatever the number of nodes. Where no collector counts
log bytes, three more look for one.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from base.arrays import Floats
from base.errors import ForecastError, InputError
from forecast.calendar import SLOT_MINUTES
from forecast.resources import RESOURCES
from trainer.prometheus.log_source import LOG_METRICS, LogSource, log_queries
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import node_names, pod_names
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.queries import Queries, fill, in_every_shape
from trainer.prometheus.recording_rules import NODE_USAGE, POD_USAGE
from trainer.prometheus.shape import on_node

_SLOT_SECONDS = SLOT_MINUTES * 60
_MOST_SKEW_SECONDS = 60
_INDEX = {resource.name: index for index, resource in enumerate(RESOURCES)}
_RECORDED_SEEN = f'max by (node) (timestamp({NODE_USAGE}{{resource="cpu"}}))'
_RAW_SEEN = " or ".join(
    f"max by (node) ({on_node(f'timestamp({metric})')})"
    for metric in ("node_memory_MemTotal_bytes", "windows_memory_available_bytes", "node_memory_working_set_bytes")
)


@dataclass(frozen=True, slots=True)
class MeasuredNodes:
    """usage: (n_nodes, n_resources), NaN = not measured; sampled: (n_nodes,) unix seconds of the last sample."""

    nodes: tuple[str, ...]
    usage: Floats
    sampled: Floats


class LiveUsage:
    """Asks a server. Raises base.errors.ForecastError when it does not answer, or not with what is needed.

    What was used in the past is read from what recording rules have; raw series of all nodes over days are too much.
    """

    def __init__(
        self,
        connection: PrometheusConnection,
        queries: Queries,
        *,
        window_seconds: float,
        log_source: LogSource = LogSource.AUTO,
        recording_rules: bool = True,
    ) -> None:
        self._connection, self._queries = connection, queries
        self._window, self._rules = round(window_seconds), recording_rules
        self._log = _node_log_templates(queries, log_source)
        # As in the nightly reading: rules may have recorded log bytes of another source than the one asked for.
        told = bool(queries.node_log or (not queries.pod_log and log_queries(log_source).node))
        any_source = log_source is LogSource.AUTO and not queries.pod_log
        self._recorded = {resource.name for resource in RESOURCES if resource.name != "log" or told or any_source}

    def read(self) -> MeasuredNodes:
        """Usage of all nodes now."""
        found: dict[str, list[float]] = {}
        have: set[str] = set()
        if self._rules:
            have = self._collect(found, self._connection.instant("recorded node usage", NODE_USAGE), None)
        for resource in RESOURCES:
            if resource.name in have:
                continue
            templates = (
                self._log if resource.name == "log" else [in_every_shape(self._queries, f"node_{resource.name}")]
            )
            for template in templates:
                name = f"node_{resource.name}"
                query = fill(template, window_seconds=self._window)
                if self._collect(found, self._connection.instant(name, query), resource.name):
                    if resource.name == "log":
                        self._log = [template]  # the collector that is there; the others need not be asked again
                    break
        nodes = tuple(sorted(found))
        seen = self._seen(recorded=bool(have))
        return MeasuredNodes(
            nodes=nodes,
            usage=np.array([found[node] for node in nodes]).reshape(len(nodes), len(RESOURCES)),
            sampled=np.array([seen.get(node, np.nan) for node in nodes]),
        )

    def pods(self, resource: str, window_seconds: int) -> dict[tuple[str, str], float]:
        """Usage of all pods now, by (namespace, name): the mean over a window that has just ended.

        Recording rules average over a step of minutes, too long for who has to follow a ramp, so raw series are asked.
        """
        template = in_every_shape(self._queries, f"pod_{resource}")
        if not template:
            raise InputError(f"no query gives {resource} of pods: set prometheus.queries.pod_{resource}")
        name = f"pod_{resource}"
        vector = self._connection.instant(name, fill(template, window_seconds=window_seconds))
        names = pod_names(name, vector.labels)
        return dict(zip(names, vector.values.tolist(), strict=True))

    def pods_named(self, resource: str, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Usage of some pods now, by (namespace, name): as recording rules have it, else of raw series."""
        found: dict[tuple[str, str], float] = {}
        if self._rules and names:
            of_pods = (
                f'namespace=~"{_any_of(sorted({one for one, _ in names}))}",pod=~"{_any_of([one for _, one in names])}"'
            )
            recorded = f'max by (namespace, pod) ({POD_USAGE}{{resource="{resource}",{of_pods}}})'
            vector = self._connection.instant("recorded pod usage", recorded)
            found = dict(zip(pod_names("recorded pod usage", vector.labels), vector.values.tolist(), strict=True))
        if not found and names:
            found = self.pods(resource, self._window)
        return {name: found[name] for name in names if name in found}

    def node_history(self, names: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of one node in half hours from `since`: (n_resources, n_slots), NaN = not recorded.

        names : all names that the metrics may know it by
        """
        recorded = f'{NODE_USAGE}{{node=~"{_any_of(names)}"}}'
        return self._history("node history", f"max by (resource) ({recorded})", since, until)

    def service_history(self, namespace: str, pods: Sequence[str], since: datetime, until: datetime) -> Floats:
        """Usage of some pods together in half hours from `since`: (n_resources, n_slots), NaN = not recorded.

        pods : regular expressions
        """
        selector = f'{{namespace={json.dumps(namespace)},pod=~"{"|".join(pods)}"}}'
        # The larger of what two Prometheus replicas recorded.
        recorded = f"sum by (resource) (max by (resource, pod) ({POD_USAGE}{selector}))"
        return self._history("service history", recorded, since, until)

    def _history(self, name: str, query: str, since: datetime, until: datetime) -> Floats:
        n_slots = round((until - since).total_seconds() / _SLOT_SECONDS)
        out = np.full((len(RESOURCES), max(n_slots, 0)), np.nan)
        if n_slots < 1:
            return out
        # The mean over the half hour that ends at a tick. A second less: what was recorded at its start is of the half
        # hour before, and Prometheus 2 counts both ends of a range.
        mean = f"avg_over_time(({query})[{_SLOT_SECONDS - 1}s:{self._window}s])"
        matrix = self._connection.range(name, mean, since, until, _SLOT_SECONDS)
        for series, tick, value in zip(
            matrix.series.tolist(), matrix.tick.tolist(), matrix.values.tolist(), strict=True
        ):
            resource = _INDEX.get(matrix.labels[series].get("resource", ""))
            if resource is not None and 1 <= tick <= n_slots:
                out[resource, tick - 1] = value
        return out

    def _seen(self, *, recorded: bool) -> dict[str, float]:
        """Return when each node was last sampled; empty if the server does not say."""
        query = _RECORDED_SEEN if recorded else _RAW_SEEN
        try:
            vector = self._connection.instant("node samples", query)
        except ForecastError:
            return {}
        # A sample of the future would stay the newest for ever.
        sampled = np.where(vector.values <= time.time() + _MOST_SKEW_SECONDS, vector.values, np.nan)
        return dict(zip(node_names("node samples", vector.labels, once=False), sampled.tolist(), strict=True))

    def _collect(self, found: dict[str, list[float]], vector: Matrix, resource: str | None) -> set[str]:
        """Put an answer in its place; returns the resources it has. resource: None = as labelled.

        Of what two Prometheus replicas recorded the larger counts.
        """
        nodes = node_names(f"node_{resource}", vector.labels, once=resource is not None)
        have = set()
        for node, labels, value in zip(nodes, vector.labels, vector.values.tolist(), strict=True):
            name = labels.get("resource", "") if resource is None else resource
            if name in _INDEX and (resource is not None or name in self._recorded):
                row = found.setdefault(node, [np.nan] * len(RESOURCES))
                row[_INDEX[name]] = float(np.fmax(row[_INDEX[name]], value))
                have.add(name)
        return have


def _node_log_templates(queries: Queries, source: LogSource) -> list[str]:
    """Queries for log bytes per node, the preferred one first."""
    if queries.node_log:
        return [queries.node_log]
    if queries.pod_log:
        return [_on_nodes(queries.pod_log)]
    sources = [one for one in LOG_METRICS if source in (one, LogSource.AUTO)]
    templates = []
    for one in sources:
        log = log_queries(one)
        if log.node or log.pod:
            templates.append(log.node or _on_nodes(log.pod))
    return templates


def _on_nodes(pods: str) -> str:
    """A query of pods added up per node; topk leaves one node where a series lingers."""
    return (
        f"sum by (node) (({pods}) * on (namespace, pod) group_left (node) "
        'topk by (namespace, pod) (1, group by (namespace, pod, node) (kube_pod_info{node!=""})))'
    )


def _any_of(names: Sequence[str]) -> str:
    """A regular expression, escaped for a PromQL string."""
    if not names:
        raise InputError("no name given: name the node as the metrics do")
    return "|".join(re.escape(name) for name in names).replace("\\", "\\\\")
