"""Devices and who holds them, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placement.devices.device_table import DeviceTable


class DeviceCollector(Collector):
    """Reads the figures at each scrape, without the lock: each is right by itself."""

    def __init__(self, devices: DeviceTable) -> None:
        self._devices = devices

    def collect(self) -> Iterator[Metric]:
        devices = GaugeMetricFamily(
            "forecast_gpu_devices", "Devices that nodes have, by model; empty = no label says it.", labels=["model"]
        )
        allocated = GaugeMetricFamily(
            "forecast_gpu_allocated_thousandths",
            "Thousandths of devices that pods have, assumed ones included, by model.",
            labels=["model"],
        )
        for model, (n, held) in sorted(self._devices.devices_by_model().items()):
            devices.add_metric([model], float(n))
            allocated.add_metric([model], float(held))
        yield from (devices, allocated)
        yield GaugeMetricFamily(
            "forecast_gpu_device_conflicts",
            "Devices of which pods have more than there is, or that pods have and that are gone.",
            value=float(self._devices.conflicts()),
        )
