"""What a model knows, in figures for people: each service, how well nodes distinguish services, and capacities that
are not configured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from base.arrays import Floats
from forecast.assumed_capacity import ASSUMED_RESOURCES, MARGIN, capacity_gaps, kinds_of_nodes, resources_measured
from forecast.hidden_demand import HiddenDemand
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, RESOURCES, assumed_line
from trainer.amounts import amount

_YOUNG_DAYS = 7
_SHOWN_PREDICTORS = 3

_POOR: Final = 0.5
"""Share of the load with identified weights below which the regression of a resource is called poor."""

_DAYS_LOOKED_AT = 7


@dataclass(frozen=True, slots=True)
class LearnedResource:
    """One resource of a service on the first day of the forecast, of one pod in base units; None = not known.

    mean, peak, bound : mean over the day, expected peak, its 0.95 bound
    predictors        : the largest weights of the blend behind the curve, largest first
    peak_weight       : what the regression says one more pod adds to a node at the service's highest half hour
    weight_error      : its standard error as a share of it
    identified        : whether that error is small enough for the weight to be a fact rather than a prior
    """

    mean: float | None
    peak: float | None
    bound: float | None
    predictors: tuple[tuple[str, float], ...]
    peak_weight: float | None
    weight_error: float | None
    identified: bool | None


@dataclass(frozen=True, slots=True)
class LearnedRuns:
    """Runs of the pods of a Job owner.

    count                        : whole runs that the lengths were learned from
    median_seconds, long_seconds : median and 0.95 quantile of a run; None = no whole run was seen
    starts                       : pods expected to start on the first day of the forecast
    """

    count: int
    median_seconds: float | None
    long_seconds: float | None
    starts: float


@dataclass(frozen=True, slots=True)
class LearnedService:
    """One service and what is known of it.

    measured_days : days with any measurement
    young         : fewer than a week of them, so it borrows from similar services, or from its own runs
    hidden_demand : why it needs more than its usage shows, a clause for each resource
    runs          : None = its pods run on and on
    """

    service: str
    replicas: float
    autoscaled: bool
    measured_days: int
    young: bool
    hidden_demand: tuple[str, ...]
    runs: LearnedRuns | None
    resources: Mapping[str, LearnedResource]

    def to_json(self) -> dict[str, Any]:
        return {
            "service": self.service,
            "replicas": self.replicas,
            "autoscaled": self.autoscaled,
            "measured_days": self.measured_days,
            "young": self.young,
            "hidden_demand": list(self.hidden_demand),
            "runs": None if self.runs is None else asdict(self.runs),
            "resources": {name: asdict(resource) for name, resource in self.resources.items()},
        }


def learned_services(model: PeakModel, history: History) -> tuple[LearnedService, ...]:
    """One entry per service of the model."""
    curves = model.usage((model.first_day,))[:, :, 0]  # (n_services, n_resources, 48)
    mean, peaks = curves.mean(axis=2), model.service_peaks(model.first_day)
    weight, hidden = _peak_weights(model), HiddenDemand.of_info(model.info, model.services)
    row = {service: index for index, service in enumerate(history.services)}
    measured = np.append(np.isfinite(history.usage_per_pod).any(axis=(1, 3)).sum(axis=1), 0)  # one more: unknown
    names = [str(name) for name in model.info.get("predictors", [])]
    result = []
    for s, service in enumerate(model.services):
        days = int(measured[row.get(service, -1)])
        result.append(
            LearnedService(
                service=str(service),
                replicas=round(float(model.reference_replicas[s]), 3),
                autoscaled=bool(model.autoscaled[s] > 0),
                measured_days=days,
                young=days < _YOUNG_DAYS,
                hidden_demand=tuple(hidden.words(s)),
                runs=_runs(model, s) if service.runs_to_completion else None,
                resources={
                    resource.name: LearnedResource(
                        mean=_known(mean[s, r]),
                        peak=_known(peaks[s, r, 0]),
                        bound=_known(peaks[s, r, -1]),
                        predictors=_largest(names, model.predictor_weights[s, r]),
                        peak_weight=_known(weight[s, r]),
                        weight_error=_known(model.peak_weight_error[s, r]),
                        identified=None if math.isnan(weight[s, r]) else bool(model.identified[s, r] > 0),
                    )
                    for r, resource in enumerate(RESOURCES)
                },
            )
        )
    return tuple(result)


def identified_load_share(model: PeakModel) -> dict[str, float]:
    """Share of the expected load of all services that belongs to those with an identified weight, per resource."""
    replicas = model.replicas((model.first_day,))[:, 0]  # (n_services, 48)
    load = (np.nan_to_num(model.usage((model.first_day,))[:, :, 0]) * replicas[:, None]).sum(axis=2)
    total = load.sum(axis=0)
    return {
        resource.name: float((load[:, r] * (model.identified[:, r] > 0)).sum() / total[r])
        for r, resource in enumerate(RESOURCES)
        if total[r] > 0
    }


def _runs(model: PeakModel, row: int) -> LearnedRuns:
    """What the model says of the runs of a Job owner."""
    day_type = model.calendar.describe((model.first_day,)).day_type[0]
    median, long = (_known(float(seconds)) for seconds in model.run_seconds[row])
    return LearnedRuns(int(model.run_count[row]), median, long, round(float(model.run_starts[row, day_type].sum()), 3))


def _peak_weights(model: PeakModel) -> Floats:
    """Weight at the highest half hour of any day type: (n_services, n_resources), NaN = nothing known."""
    highest: Floats = np.where(np.isnan(model.peak_weight), -np.inf, model.peak_weight).max(
        axis=(2, 3), initial=-np.inf
    )
    return np.where(np.isfinite(highest), highest, np.nan)


def _largest(names: list[str], weights: Floats) -> tuple[tuple[str, float], ...]:
    if len(names) != len(weights):
        return ()
    pairs = [(name, round(float(w), 3)) for name, w in zip(names, weights, strict=True) if w > 0]  # NaN is left out
    return tuple(sorted(pairs, key=lambda pair: -pair[1])[:_SHOWN_PREDICTORS])


def _known(value: float) -> float | None:
    """Five digits are enough for a report; None where nothing is known."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class RegressionCondition:
    """The regression of one resource.

    services       : that take part, with pods on measured nodes
    effective_rank : how many of them the nodes distinguish (`PeakWeights.determined`, summed), at most `services`
    identified     : services whose weight is known to 20 %
    load_share     : share of the expected load that is theirs; None = no load
    from_nodes     : services without any measured pod, which are known by their nodes alone
    """

    resource: str
    services: int
    effective_rank: float
    identified: int
    load_share: float | None
    from_nodes: int

    @property
    def is_poor(self) -> bool:
        """Return whether services that are known by their nodes alone cannot be separated."""
        return self.from_nodes > 0 and (self.load_share or 0.0) < _POOR

    @property
    def advice(self) -> str:
        """One line that says what was found and what helps."""
        share = "" if self.load_share is None else f" ({self.load_share:.0%} of the load)"
        return (
            f"{self.resource} is measured per node, and the nodes tell about {self.effective_rank:.0f} of "
            f"{self.services} services apart; weights of {self.identified}{share} are identified, the others are taken "
            f"from requests: measure {self.resource} per pod, or wait for releases that move pods "
            "(docs/understand/model.md)"
        )

    def to_json(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self) | {"poor": self.is_poor}


def regression_conditions(model: PeakModel) -> Mapping[str, RegressionCondition]:
    """Return the condition by resource, without resources of which no node was measured."""
    shares = identified_load_share(model)
    facts = model.info.get("peak_weights", {})
    found = {}
    for resource in RESOURCES:
        of_resource = facts.get(resource.name, {})
        if of_resource.get("services"):
            found[resource.name] = RegressionCondition(
                resource=resource.name,
                services=int(of_resource["services"]),
                effective_rank=float(of_resource["effective_rank"]),
                identified=int(of_resource["identified"]),
                load_share=shares.get(resource.name),
                from_nodes=int(of_resource["from_nodes"]),
            )
    return found


@dataclass(frozen=True, slots=True)
class AssumedCapacity:
    """What nodes of one kind are taken to be able to do, in base units.

    cpu_cores : of the smallest of the nodes
    sustained : the rate that the busiest of them sustained (forecast.assumed_capacity)
    """

    resource: str
    cpu_cores: float
    nodes: int
    sustained: float
    capacity: float


@dataclass(frozen=True, slots=True)
class Capacities:
    """assumed: by resource and kind; gaps: one line about resources that have no capacity, "" = there are none."""

    assumed: tuple[AssumedCapacity, ...]
    gaps: str

    def lines(self) -> list[str]:
        """Returns one line per resource with an assumed capacity, then the gaps."""
        found = []
        for name in dict.fromkeys(one.resource for one in self.assumed):
            unit = next(resource.unit for resource in RESOURCES if resource.name == name)
            kinds = "; ".join(
                f"{amount(one.capacity, unit)} on {one.nodes} nodes of {one.cpu_cores:g} cores"
                for one in self.assumed
                if one.resource == name
            )
            found.append(f"{assumed_line([name])}; {MARGIN:g} x what such nodes sustained: {kinds}")
        if found:
            found.append("where a node has the annotation forecast-scheduler.io/capacity, that counts instead")
        return [*found, *([self.gaps] if self.gaps else [])]

    def to_json(self) -> dict[str, Any]:
        return {"assumed": [asdict(one) for one in self.assumed], "gaps": self.gaps or None}


def capacities_of(model: PeakModel, history: History) -> Capacities:
    """Returns the assumed capacities of a model and the gaps on nodes that were measured in the last week."""
    kinds = kinds_of_nodes(model.node_capacity[:, CPU])
    assumed = []
    for resource in ASSUMED_RESOURCES:
        for kind in range(kinds.max(initial=-1) + 1):
            nodes = np.flatnonzero((kinds == kind) & (model.node_capacity_assumed[:, resource] > 0))
            if len(nodes):
                capacity = float(model.node_capacity[nodes[0], resource])
                cores = float(model.node_capacity[nodes, CPU].min())
                name = RESOURCES[resource].name
                assumed.append(AssumedCapacity(name, cores, len(nodes), capacity / MARGIN, capacity))
    there = np.asarray(np.isfinite(history.node_usage[:, :, -_DAYS_LOOKED_AT:]).any(axis=(1, 2, 3)))
    return Capacities(tuple(assumed), capacity_gaps(_as_the_scorer_has_it(model)[there], resources_measured(model)))


def _as_the_scorer_has_it(model: PeakModel) -> Floats:
    """Capacities with those of nodes with as much CPU in the gaps: (n_nodes, n_resources)."""
    capacity = model.node_capacity.astype(np.float64)
    kinds = kinds_of_nodes(capacity[:, CPU])
    for kind in range(kinds.max(initial=-1) + 1):
        for resource in ASSUMED_RESOURCES:
            of_kind = capacity[kinds == kind, resource]
            if np.isfinite(of_kind).any():
                capacity[kinds == kind, resource] = np.where(np.isnan(of_kind), np.nanmedian(of_kind), of_kind)
    return capacity
