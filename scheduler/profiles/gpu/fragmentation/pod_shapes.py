"""The shape of a pod: what fragmentation asks of it. Card types that it names become the models that match them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cluster.tables.columns import whole_units
from kube.objects.objects import PodInfo
from placement.devices.card_names import of_any_type
from placement.devices.demand import GpuDemand, gpu_demand
from placement.devices.device_table import DeviceTable
from placement.filters.annotations import GPU_TYPE, names_in
from scheduler.profiles.gpu.fragmentation.shapes import PodShape

_MIB = 2**20


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
