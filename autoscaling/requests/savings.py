"""What recommendations change against today's requests, and how many more pods fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autoscaling.requests.recommending import Recommendation
from autoscaling.requests.use import ServiceUse
from base.arrays import Floats


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


def savings_of(use: ServiceUse, found: Sequence[Recommendation]) -> Savings:
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
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(asked > 0, allocatable / asked, np.inf)
    return float(pods.sum() * times.min())


def _pair(sums: Floats) -> tuple[float, float]:
    return float(sums[0]), float(sums[1])


def _whole(pods: float) -> int | None:
    return int(pods) if np.isfinite(pods) else None
