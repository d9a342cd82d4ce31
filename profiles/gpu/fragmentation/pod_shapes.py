"""What pods ask for, as far as fragmentation is concerned, and how often each of it is asked for.

The shape of a pod: what fragmentation asks of it. Card types that it names become the models that match them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from base.arrays import Floats
from cluster.tables.columns import whole_units
from kube.objects.objects import PodInfo
from placement.card_names import of_any_type
from placement.devices.device_demand import GpuDemand, gpu_demand
from placement.devices.device_table import DeviceTable
from placement.filters.pod_annotations import GPU_TYPE, names_in

WHOLE: Final = 1000
"""Thousandths of a whole card."""

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class PodShape:
    """What a pod asks for.

    cpu_milli, memory_mib : thousandths of a core, and MiB
    count                 : cards; 0 = none
    milli                 : thousandths of each card, 1 to 1000; less than 1000 only with one card; 0 = no card
    models                : card models that it takes; empty = any
    """

    cpu_milli: int
    memory_mib: int
    count: int
    milli: int
    models: frozenset[str] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether it asks for a part of a card."""
        return self.count == 1 and self.milli < WHOLE

    @property
    def asked_milli(self) -> int:
        """Thousandths of cards in all."""
        return self.count * self.milli

    def order(self) -> tuple[int, int, int, int, list[str]]:
        """For lists that look the same however they came about."""
        return self.cpu_milli, self.milli, self.count, self.memory_mib, sorted(self.models)


@dataclass(frozen=True, slots=True)
class ShapeMix:
    """shapes; weight: (n_shapes,) how likely the next pod is of that shape, sums to 1."""

    shapes: tuple[PodShape, ...]
    weight: Floats

    def __post_init__(self) -> None:
        if self.weight.shape != (len(self.shapes),):
            raise ValueError(f"{len(self.shapes)} shapes need as many weights; got an array of {self.weight.shape}")


class PodShapes:
    """Under the lock of the tables. What is asked for as memory counts as on the median card."""

    def __init__(self, devices: DeviceTable) -> None:
        self._devices = devices
        self._latest: tuple[PodInfo, int, PodShape] | None = None  # of how many models, and the answer

    def of(self, pod: PodInfo) -> PodShape:
        """count 0 = it asks for no card. A pod is asked about several times in turn, waiting and on its node."""
        n_models = len(self._devices.models)
        if self._latest is not None:
            one, of_models, shape = self._latest
            is_same = one.requests is pod.requests and one.annotations is pod.annotations
            if is_same and of_models == n_models:
                return shape
        demand = gpu_demand(pod, self._devices.options)
        shape = self._shape(pod, demand)
        # What memory is in thousandths changes with the nodes.
        self._latest = None if demand is not None and demand.memory_units else (pod, n_models, shape)
        return shape

    def _shape(self, pod: PodInfo, demand: GpuDemand | None) -> PodShape:
        if demand is not None:
            demand = self._devices.typical_demand(demand)
        return PodShape(
            cpu_milli=whole_units("cpu", pod.requests.get("cpu", 0.0)),
            memory_mib=-(-whole_units("memory", pod.requests.get("memory", 0.0)) // _MIB),
            count=0 if demand is None else demand.count,
            milli=0 if demand is None else demand.milli,
            models=frozenset() if demand is None else _accepted(names_in(pod, GPU_TYPE), tuple(self._devices.models)),
        )


@lru_cache(maxsize=1024)
def _accepted(named: Sequence[str], models: tuple[str, ...]) -> frozenset[str]:
    """Models that are meant; the names themselves where nothing matches, so that it is not taken for any model."""
    if not named:
        return frozenset()
    return frozenset(filter(of_any_type(named), models)) or frozenset(named)
