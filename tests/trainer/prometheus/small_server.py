"""A real Prometheus that knows a small cluster for a few hours."""

from __future__ import annotations

import time
from pathlib import Path

from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import Scrapes


def small_server(blocks: Path) -> PrometheusServer:
    """A server that knows `small_cluster`."""
    write_blocks(small_cluster(), blocks)
    return PrometheusServer(blocks)


def small_cluster() -> list[MetricSeries]:
    """Three nodes and three namespaces: four hours on DAY, and the same shortly before now."""
    scrapes = Scrapes()
    for number in range(1, 4):
        for namespace in ("shop", "pay", "data"):
            scrapes.pod(
                namespace, f"pod-{number}", f"n{number}", kind="StatefulSet", owner="pod", uid=f"{namespace}-{number}"
            )
            scrapes.cpu(namespace, f"pod-{number}", 0.5 * number)
            scrapes.memory(namespace, f"pod-{number}", 2e8)
        scrapes.gauge("kube_node_info", 1, node=f"n{number}", internal_ip=f"10.0.0.{number}")
        for resource, value in (("cpu", 8.0), ("memory", 3e10)):
            scrapes.gauge("kube_node_status_capacity", value, node=f"n{number}", resource=resource)
        scrapes.counter("node_cpu_seconds_total", 3.0, instance=f"n{number}", cpu=0, mode="user")
        scrapes.gauge("node_memory_MemTotal_bytes", 3e10, instance=f"n{number}")
        scrapes.gauge("node_memory_MemAvailable_bytes", 2.8e10, instance=f"n{number}")
    now = int(time.time()) // 60 * 60
    recent = [
        MetricSeries(one.name, one.labels, one.times - int(one.times[-1]) + now - 30, one.values)
        for one in scrapes.series
    ]
    return [*scrapes.series, *recent]
