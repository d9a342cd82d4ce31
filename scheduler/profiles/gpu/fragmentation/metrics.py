"""How broken the idle cards are, as metrics: what of them the pods that come could not use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.tables.state import ClusterState
from placement.devices.device_table import DeviceTable
from scheduler.profiles.gpu.fragmentation.cost_table import states_of_rows
from scheduler.profiles.gpu.fragmentation.fragmentation import MixColumns, fragmentation
from scheduler.profiles.gpu.fragmentation.live_mix import LiveMix
from scheduler.profiles.gpu.fragmentation.shapes import WHOLE


class FragmentationGauges(Collector):
    """For any thread. locked: takes the lock of the tables."""

    def __init__(
        self,
        state: ClusterState,
        devices: DeviceTable,
        live_mix: LiveMix,
        *,
        locked: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._state, self._devices, self._live_mix, self._locked = state, devices, live_mix, locked

    def collect(self) -> Iterator[Metric]:
        by_model = GaugeMetricFamily(
            "forecast_gpu_fragmented_thousandths",
            "Idle thousandths of cards that a pod of the live mix is expected not to be able to use, by card model.",
            labels=["model"],
        )
        share = GaugeMetricFamily(
            "forecast_gpu_fragmented_share",
            "Idle cards that a pod of the live mix is expected not to be able to use, as a share of all cards, 0..1.",
        )
        fragmented, total = self._fragmented()
        for model, amount in fragmented.items():
            by_model.add_metric([model], amount)
        share.add_metric([], sum(fragmented.values()) / total if total else 0.0)
        yield by_model
        yield share

    def _fragmented(self) -> tuple[dict[str, float], float]:
        """By model, and thousandths of all cards."""
        with self._locked():
            mix, devices = self._live_mix.mix(), self._devices
            rows = np.flatnonzero(devices.n_cards)
            models = list(devices.models)
            if mix is None or not len(rows):
                return {}, 0.0
            nodes = states_of_rows(self._state, devices, rows)
        amounts = fragmentation(MixColumns(mix, models), nodes)
        by_model = np.bincount(nodes.model + 1, weights=amounts, minlength=len(models) + 1)  # the first: unknown
        names = ["", *models]
        seen = np.unique(nodes.model + 1)
        return {names[at]: float(by_model[at]) for at in seen}, float(WHOLE * nodes.n_devices.sum())
