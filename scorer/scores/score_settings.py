"""Settings of the scores: `scorer.scores`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, field_validator

from base.errors import InputError
from base.setting_group import SettingGroup
from cluster.water_level import WaterLevels
from forecast.resources import RESOURCES, resource_index

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {"predicted_peak": 1.0}

ShapePoint = tuple[int, int]
"""(utilization in percent, 0..100; score, 0..10) as in KubeSchedulerConfiguration."""

BIN_PACKING: Final[tuple[ShapePoint, ...]] = ((0, 0), (100, 10))
"""The fuller the better, the shape of the Kubernetes documentation."""

_MAX_UTILIZATION: Final = 100
_MAX_SHAPE_SCORE: Final = 10

Weight = Annotated[float, Field(ge=0)]


def _points(given: Any) -> Any:
    """Points in order, of the mapping that a document holds."""
    return tuple(sorted((int(at), score) for at, score in given.items())) if isinstance(given, Mapping) else given


class ScoreParameters(SettingGroup):
    """Parameters of all scores."""

    request_weights: Mapping[str, Weight] = Field(default_factory=lambda: {"cpu": 1.0, "memory": 1.0})
    """By Kubernetes resource, of the scores that look at how much is requested: least_allocated, most_allocated,
    requested_to_capacity_ratio, spread_or_stack. kube-scheduler's default."""

    balance_weights: Mapping[str, Weight] = Field(default_factory=lambda: {"cpu": 1.0, "memory": 1.0})
    """By Kubernetes resource, of balance and balanced_allocation. kube-scheduler allows 1 only; here {nvidia.com/gpu:
    3} is possible."""

    # Memory as in the objective of docs/understand/placement.md: a node at 85 % memory serves as well as one at 50 %.
    usage_weights: Mapping[str, Weight] = Field(
        default_factory=lambda: {one.name: 0.25 if one.name == "memory" else 1.0 for one in RESOURCES}
    )
    """By resource, of most_available: 0 leaves a resource out, other weights enter its mean only."""

    shape: Annotated[tuple[ShapePoint, ...], BeforeValidator(_points)] = BIN_PACKING
    """Of requested_to_capacity_ratio: utilization in percent, rising -> score 0 to 10. The default stacks."""

    water_levels: WaterLevels = Field(default_factory=WaterLevels)

    @field_validator("request_weights", "balance_weights", "usage_weights")
    @classmethod
    def _counts_something(cls, weights: Mapping[str, float]) -> Mapping[str, float]:
        if not any(weight > 0 for weight in weights.values()):
            raise ValueError("no resource has a weight above 0: name at least one, such as cpu: 1")
        return weights

    @field_validator("usage_weights")
    @classmethod
    def _known(cls, weights: Mapping[str, float]) -> Mapping[str, float]:
        try:
            for name in weights:
                resource_index(name)
        except InputError as error:
            raise ValueError(str(error)) from None
        return weights

    @field_validator("shape")
    @classmethod
    def _rises(cls, shape: tuple[ShapePoint, ...]) -> tuple[ShapePoint, ...]:
        try:
            check_shape(shape)
        except InputError as error:
            raise ValueError(str(error)) from None
        return shape


class ScoreOptions(ScoreParameters):
    """Which scores count, and their parameters (docs/understand/placement.md)."""

    weights: Mapping[str, Weight] = Field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    """Of the scores by name; the weighted mean is the total."""


def check_shape(shape: Sequence[ShapePoint]) -> None:
    """Raises InputError unless the utilizations rise within 0..100 and the scores are whole numbers within 0..10."""
    utilizations = [utilization for utilization, _ in shape]
    numbers = [number for point in shape for number in point]
    if (
        not shape
        or any(number != int(number) for number in numbers)
        or any(later <= earlier for earlier, later in pairwise(utilizations))
        or utilizations[0] < 0
        or utilizations[-1] > _MAX_UTILIZATION
        or any(not 0 <= score <= _MAX_SHAPE_SCORE for _, score in shape)
    ):
        raise InputError(
            f"the shape of requested_to_capacity_ratio is {[list(point) for point in shape]}: give at least one pair "
            f"[utilization, score] of whole numbers, utilizations rising within 0..{_MAX_UTILIZATION}, "
            f"scores within 0..{_MAX_SHAPE_SCORE}"
        )
