"""All recommendations of one look, what they save, and how often the usage that came passed them, as the command
prints and writes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autoscaling.autoscale_settings import RequestOptions
from autoscaling.prices.node_prices import NodePrices
from autoscaling.prices.worth import freed_worth
from autoscaling.requests.recommending import SIZED_BY, Recommendation, recommend
from autoscaling.requests.rounding import cpu_text, memory_text
from autoscaling.requests.use import PodUseOfService
from base.arrays import Floats
from base.excluded import ExcludedOptions
from forecast.resources import CPU, MEMORY
from scorer.replay.recording import Recording

_CLOSE = 1 + 1e-6


@dataclass(frozen=True, slots=True)
class Savings:
    """Of all pods together; negative = more is requested than today.

    today, recommended : cores and bytes, with requests that hold at all hours
    by_clock  : mean cores over the week, with requests by hour class
    fit_today, fit_recommended : pods like these, in their proportion, that all nodes together have room for
    """

    today: tuple[float, float]
    recommended: tuple[float, float]
    by_clock: float
    fit_today: float
    fit_recommended: float

    def to_json(self) -> dict[str, Any]:
        """Under `savings` of `requests --json`."""
        return {
            "cores_today": self.today[0],
            "cores_recommended": self.recommended[0],
            "cores_by_clock": self.by_clock,
            "bytes_today": self.today[1],
            "bytes_recommended": self.recommended[1],
            "pods_fit_today": _whole(self.fit_today),
            "pods_fit_recommended": _whole(self.fit_recommended),
        }


def savings_of(use: PodUseOfService, found: Sequence[Recommendation]) -> Savings:
    """Sum them up, each service with its highest expected number of pods; those left alone count as they are."""
    pods = np.array([one.replicas for one in found])
    today = np.array([one.today for one in found]).reshape(-1, 2)
    then = np.array([one.request for one in found]).reshape(-1, 2)
    mean_cores = np.array([one.by_slot.mean() for one in found])
    return Savings(
        today=_pair(pods @ today),
        recommended=_pair(pods @ then),
        by_clock=float(pods @ mean_cores),
        fit_today=_fit(pods, today, use.allocatable),
        fit_recommended=_fit(pods, then, use.allocatable),
    )


def _fit(pods: Floats, requests: Floats, allocatable: Floats) -> float:
    """How many pods in this proportion fit, as if all nodes were one: an upper limit. Infinite = nothing is asked."""
    asked = pods @ requests
    if not asked.any():
        return math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(asked > 0, allocatable / asked, np.inf)
    return float(pods.sum() * times.min())


def _pair(sums: Floats) -> tuple[float, float]:
    return float(sums[0]), float(sums[1])


def _whole(pods: float) -> int | None:
    return int(pods) if np.isfinite(pods) else None


@dataclass(frozen=True, slots=True)
class Risk:
    """Shares of the half hours of single pods; NaN = the service had no pods, or was left alone.

    cpu         : (n_services,) usage passed the CPU request for all hours; the pod got more if its node had more
    cpu_by_hour : (n_services,) the same of the request that follows the hour, where it does
    memory      : (n_services,) usage passed the memory request
    of_all      : the three over all pods of services with a recommendation
    """

    cpu: Floats
    cpu_by_hour: Floats
    memory: Floats
    of_all: tuple[float, float, float]


def risk_of(recording: Recording, found: Sequence[Recommendation]) -> Risk:
    """Hold recommendations against the recorded window; `found` is for the services of the recording, in order."""
    over, there = np.zeros((recording.n_services, 3)), np.zeros((recording.n_services, 3))
    for pod, service in enumerate(recording.service.tolist()):
        one = found[service]
        if one.because is not None:
            continue
        present = recording.present[pod] > 0
        used = recording.load[pod][:, present] / recording.present[pod][present]
        memory = np.nan if one.memory_bytes is None else one.memory_bytes
        limits = (one.once, one.by_slot[present], memory)
        for column, (resource, limit) in enumerate(zip((CPU, CPU, MEMORY), limits, strict=True)):
            if np.isfinite(limit).all():
                over[service, column] += (used[resource] > limit * _CLOSE).sum()
                there[service, column] += present.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        shares, total = over / there, over.sum(axis=0) / there.sum(axis=0)
    once, by_hour, memory_share = total.tolist()
    return Risk(shares[:, 0], shares[:, 1], shares[:, 2], (once, by_hour, memory_share))


@dataclass(frozen=True, slots=True)
class RequestReport:
    """
    risk   : None = nothing was recorded after the model was fitted
    prices : of the nodes that the pods run on
    """

    found: Sequence[Recommendation]
    savings: Savings
    risk: Risk | None
    prices: NodePrices

    def to_json(self) -> dict[str, Any]:
        """The figures as `requests --json` writes them; NaN = not known."""
        risk, (cores, count), (then_cores, then_count) = self.risk, self.savings.today, self.savings.recommended
        freed = freed_worth(self.prices, cores - then_cores, count - then_count)
        return {
            "savings": self.savings.to_json(),
            "money": {**self.prices.to_json(), "freed_per_month": freed},
            "sized_by": SIZED_BY,
            "risk": None if risk is None else dict(zip(("cpu", "cpu_by_hour", "memory"), risk.of_all, strict=True)),
            "services": [
                _service(one)
                | ({} if risk is None else {"over_cpu": _known(risk.cpu[row]), "over_memory": _known(risk.memory[row])})
                for row, one in enumerate(self.found)
            ],
        }


def report_on(
    use: PodUseOfService,
    options: RequestOptions,
    hot: float,
    excluded: ExcludedOptions,
    prices: NodePrices,
    recording: Recording | None = None,
) -> RequestReport:
    """Recommend, sum up, and hold it against recorded days that the forecast did not know, if there are any."""
    found = recommend(use, options, hot, excluded)
    risk = None if recording is None else risk_of(recording, found)
    return RequestReport(found, savings_of(use, found), risk, prices)


def _service(one: Recommendation) -> dict[str, Any]:
    cores, count = one.request
    return {
        "service": str(one.service),
        "pods": one.replicas,
        "today": {"cpu": _cpu(one.today[CPU]), "memory": _memory(one.today[MEMORY])},
        "recommended": None if one.because else {"cpu": _cpu(cores), "memory": _memory(count)},
        "by_hour": {name: cpu_text(value) for name, value in one.cores.items()} if one.has_clock else None,
        "saved_cores": one.replicas * (one.today[CPU] - cores),
        "saved_bytes": one.replicas * (one.today[MEMORY] - count),
        "hidden_demand": "; ".join(one.hidden) or None,
        "left_alone": one.because.value if one.because else None,
    }


def _cpu(cores: float) -> str | None:
    return cpu_text(cores) if cores > 0 else None


def _memory(count: float) -> str | None:
    return memory_text(count) if count > 0 else None


def _known(share: float) -> float | None:
    return None if math.isnan(share) else float(share)
