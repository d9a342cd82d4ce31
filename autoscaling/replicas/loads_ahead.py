"""The expected loads of all services at one moment: what the metrics API and /metrics show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from autoscaling.replicas.expected_load import expected_load
from autoscaling.replicas.options import ReplicaOptions
from autoscaling.services_ahead import ServicesAhead
from base.arrays import Floats
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.constraints import LabelSelector
from kube.objects.selectors import selector_matches

METRIC = "forecast_service_expected_load"
"""Of the external metrics API, and of /metrics."""


@dataclass(frozen=True, slots=True)
class LoadAhead:
    """Of one service and resource. labels: those a selector may name; value: base units, all pods together."""

    namespace: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class LoadsAhead:
    """Of all services that are measured. at: unix seconds at which it was worked out; 0 = not yet."""

    at: float = 0.0
    by_namespace: Mapping[str, tuple[LoadAhead, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[LoadAhead]:
        for loads in self.by_namespace.values():
            yield from loads

    def matching(self, namespace: str, selector: LabelSelector) -> tuple[LoadAhead, ...]:
        """Those of a namespace whose labels match."""
        return tuple(one for one in self.by_namespace.get(namespace, ()) if selector_matches(selector, one.labels))


def loads_ahead(ahead: ServicesAhead, used: Floats, middle: float, now: float, options: ReplicaOptions) -> LoadsAhead:
    """Work them out. used: (n_services, n_resources), NaN = not measured; middle: of the time that was measured."""
    expected = expected_load(
        used,
        ahead.at(ahead.load, middle),
        ahead.highest(ahead.load, now, now + options.lead),
        ceiling=options.ceiling,
    )
    found: dict[str, list[LoadAhead]] = {}
    for row, resource in zip(*np.nonzero(np.isfinite(expected)), strict=True):
        service = ahead.services[row]
        labels = _labels(service, RESOURCES[resource].name)
        found.setdefault(service.namespace, []).append(
            LoadAhead(service.namespace, labels, float(expected[row, resource]))
        )
    return LoadsAhead(now, {namespace: tuple(loads) for namespace, loads in found.items()})


def _labels(service: ServiceKey, resource: str) -> Mapping[str, str]:
    return {"kind": service.kind, "name": service.name, "resource": resource}
