"""The expected loads of all services N minutes ahead, from what is used now and how the forecast says that this will
grow: what the metrics API and /metrics show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from autoscaling.autoscale_settings import ReplicaOptions
from autoscaling.services_ahead import ServicesAhead
from base.arrays import Floats
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.constraints import LabelSelector
from kube.objects.labels import selector_matches

# The load that is expected N minutes ahead, from what is used now and how the forecast says that this will grow.
#
#     expected = used * clip(highest forecast in the lead / forecast at the measurement, 1, ceiling)
#
# Only the shape of the forecast counts, so its level cannot be wrong. What is used now is a floor: a forecast never
# takes a replica that the present load needs. The ceiling limits what a wrong shape can add.
#
# The forecast is the expected curve.

METRIC = "forecast_service_expected_load"
"""Of the external metrics API, and of /metrics."""


def expected_load(used: Floats, then: Floats, ahead: Floats, *, ceiling: float) -> Floats:
    """Return the load to have replicas for, in the unit of `used`; arrays of one shape.

    used  : what is measured, >= 0; NaN = not measured: nothing is said, and the autoscaler falls back on its own metric
    then  : forecast for the middle of the time that was measured
    ahead : highest forecast between now and the end of the lead
    """
    if ceiling < 1:
        raise ValueError(f"ceiling is {ceiling}: it must be at least 1, what is used now")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a tiny `then` grows past any float
        growth = ahead / then
    growth = np.where(np.isfinite(growth), growth, np.where(ahead > 0, ceiling, 1.0))
    return np.asarray(used * np.clip(growth, 1.0, ceiling))


@dataclass(frozen=True, slots=True)
class ServiceLoadAhead:
    """Of one service and resource. labels: those a selector may name; value, and used, which is measured now: base
    units, all pods together."""

    namespace: str
    labels: Mapping[str, str]
    value: float
    used: float


@dataclass(frozen=True, slots=True)
class LoadsAhead:
    """Of all services that are measured. at: unix seconds at which it was worked out; 0 = not yet."""

    at: float = 0.0
    by_namespace: Mapping[str, tuple[ServiceLoadAhead, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ServiceLoadAhead]:
        for loads in self.by_namespace.values():
            yield from loads

    def matching(self, namespace: str, selector: LabelSelector) -> tuple[ServiceLoadAhead, ...]:
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
    found: dict[str, list[ServiceLoadAhead]] = {}
    for row, resource in zip(*np.nonzero(np.isfinite(expected)), strict=True):
        service = ahead.services[row]
        labels = _labels(service, RESOURCES[resource].name)
        found.setdefault(service.namespace, []).append(
            ServiceLoadAhead(service.namespace, labels, float(expected[row, resource]), float(used[row, resource]))
        )
    return LoadsAhead(now, {namespace: tuple(loads) for namespace, loads in found.items()})


def _labels(service: ServiceKey, resource: str) -> Mapping[str, str]:
    return {"kind": service.kind, "name": service.name, "resource": resource}
