"""What may be set about the scores. The defaults are those of docs/scores.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from forecast.errors import InputError
from forecast.resources import RESOURCES, resource_index
from scorer.scores.requested_to_capacity_ratio import BIN_PACKING, ShapePoint, check_shape
from scorer.scores.spread_or_stack import WaterLevels

__all__ = ["ScoreParameters"]


def _cpu_and_memory() -> Mapping[str, float]:
    return {"cpu": 1.0, "memory": 1.0}


def _all_resources() -> Mapping[str, float]:
    # Memory as in the objective of docs/placement.md: a node at 85 % memory serves as well as one at 50 %.
    return {resource.name: 0.25 if resource.name == "memory" else 1.0 for resource in RESOURCES}


@dataclass(frozen=True, slots=True)
class ScoreParameters:
    """Parameters of all scores.

    request_weights : by Kubernetes resource, of the scores that look at how much is requested: least_allocated,
                      most_allocated, requested_to_capacity_ratio, spread_or_stack. kube-scheduler's default
    balance_weights : by Kubernetes resource, of balance and balanced_allocation, such as {"nvidia.com/gpu": 3}
    usage_weights   : by resource of forecast.resources, of most_available
    shape           : (utilization in percent, score 0..10) points of requested_to_capacity_ratio
    water_levels    : of spread_or_stack
    """

    request_weights: Mapping[str, float] = field(default_factory=_cpu_and_memory)
    balance_weights: Mapping[str, float] = field(default_factory=_cpu_and_memory)
    usage_weights: Mapping[str, float] = field(default_factory=_all_resources)
    shape: tuple[ShapePoint, ...] = BIN_PACKING
    water_levels: WaterLevels = field(default_factory=WaterLevels)

    def __post_init__(self) -> None:
        _check("request_weights", self.request_weights)
        _check("balance_weights", self.balance_weights)
        _check("usage_weights", self.usage_weights)
        for name in self.usage_weights:
            resource_index(name)  # raises UnknownName
        check_shape(self.shape)


def _check(name: str, weights: Mapping[str, float]) -> None:
    for resource, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(f"{name} gives {resource} the weight {weight}: a finite number, 0 or more, is needed")
    if not any(weight > 0 for weight in weights.values()):
        raise InputError(f"{name} gives no resource a weight above 0: name at least one, such as cpu: 1")
