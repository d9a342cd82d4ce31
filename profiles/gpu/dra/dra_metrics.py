"""Claims, devices and what is written, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from profiles.gpu.dra.claim_feasibility import ClaimFeasibility
from profiles.gpu.dra.claim_table import DraTable

WriteCounts = Counter[tuple[str, str]]
"""(what, outcome) -> requests."""

_WRITES: Final = ("finalizer", "allocate", "reserve", "unreserve", "deallocate", "create", "record", "remove")
_OUTCOMES: Final = ("written", "conflict", "failed")


class DraCollector(Collector):
    """Reads the figures at each scrape, under the lock of the tables."""

    def __init__(self, table: DraTable, feasibility: ClaimFeasibility, writes: WriteCounts) -> None:
        self._table, self._feasibility, self._writes = table, feasibility, writes

    def collect(self) -> Iterator[Metric]:
        claims, devices, used, pools = self._counted()
        text = "ResourceClaims by what became of them."
        family = GaugeMetricFamily("forecast_gpu_dra_claims", text, labels=["state"])
        for state in ("open", "in_flight", "allocated"):
            family.add_metric([state], float(claims[state]))
        yield family
        family = GaugeMetricFamily(
            "forecast_gpu_dra_devices", "Devices that ResourceSlices describe, by driver.", labels=["driver"]
        )
        for driver, number in sorted(devices.items()):
            family.add_metric([driver], float(number))
        yield family
        family = GaugeMetricFamily(
            "forecast_gpu_dra_devices_used",
            "Devices that claims have or are about to have, by driver; those for administrators do not count.",
            labels=["driver"],
        )
        for driver in sorted({*devices, *used}):
            family.add_metric([driver], float(used[driver]))
        yield family
        family = GaugeMetricFamily(
            "forecast_gpu_dra_pools",
            "Pools of devices; of those that are incomplete or invalid nothing is given away.",
            labels=["state"],
        )
        for state in ("usable", "incomplete", "invalid"):
            family.add_metric([state], float(pools[state]))
        yield family
        counter = CounterMetricFamily(
            "forecast_gpu_dra_writes", "Patches of ResourceClaims that were sent.", labels=["what", "outcome"]
        )
        for what in _WRITES:
            for outcome in _OUTCOMES:
                counter.add_metric([what, outcome], float(self._writes[what, outcome]))
        yield counter
        yield CounterMetricFamily(
            "forecast_gpu_dra_searches",
            "Nodes for which an allocation was looked for, answers that were kept left out.",
            value=float(self._feasibility.searches),
        )
        yield CounterMetricFamily(
            "forecast_gpu_dra_selector_evaluations",
            "CEL expressions evaluated for a device, answers that were kept left out.",
            value=float(self._feasibility.expressions.evaluations),
        )
        yield CounterMetricFamily(
            "forecast_gpu_dra_selector_refusals",
            "CEL expressions that were not evaluated, or not to the end: they cost too much, or had no time left.",
            value=float(self._feasibility.expressions.refused),
        )
        yield CounterMetricFamily(
            "forecast_gpu_dra_search_seconds",
            "Seconds of evaluating CEL expressions, and of searches that took longer than usual.",
            value=self._feasibility.time.spent,
        )

    def _counted(self) -> tuple[Counter[str], Counter[str], Counter[str], Counter[str]]:
        """Claims by state, devices and used devices by driver, pools by state."""
        table = self._table
        claims: Counter[str] = Counter()
        devices: Counter[str] = Counter()
        pools: Counter[str] = Counter()
        with table.locked():
            for claim in table.all_claims():
                flies = claim.allocation is None and table.allocation_of(claim) is not None
                claims["in_flight" if flies else "open" if claim.allocation is None else "allocated"] += 1
            for pool in table.inventory.pools.values():
                devices[pool.id.driver] += len(pool.devices)
                pools["incomplete" if not pool.is_complete else "invalid" if pool.mistake else "usable"] += 1
            used = Counter(device.driver for device in {*table.used, *table.shares})
        return claims, devices, used, pools
