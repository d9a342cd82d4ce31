"""What a look at the server of a large cluster costs: `doctor --prometheus` as a command; for benchmarks.shapes.

A scrape every two and a half minutes; Prometheus holds nothing older.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from base.arrays import Ints
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer

# Doctor reads the last fifteen minutes; by when everything is imported, some of what lies ahead is behind.
_BEHIND_SECONDS, _AHEAD_SECONDS, _APART = 960, 1500, 150
_AT_ONCE = 200_000  # series that promtool imports
_PODS_OF_A_SERVICE = 50


def look_at_large_cluster(n_nodes: int, n_pods: int) -> str:
    """Return one line: series, seconds and peak memory of the command."""
    now = int(time.time())
    times = np.arange(now - _BEHIND_SECONDS, now + _AHEAD_SECONDS, _APART)
    with tempfile.TemporaryDirectory() as directory:
        blocks, n_series = Path(directory), 0
        every = _series(n_nodes, n_pods, times)
        while batch := list(itertools.islice(every, _AT_ONCE)):
            write_blocks(batch, blocks)
            n_series += len(batch)
        with PrometheusServer(blocks) as server:
            command = [sys.executable, "-m", "forecast_scheduler", "doctor", "--prometheus", server.url]
            started = time.monotonic()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.monotonic() - started
    mebibytes = _mebibytes(used)
    return (
        f"{n_nodes:,} nodes, {n_pods:,} pods, {n_series:,} series: doctor ended with "
        f"{os.waitstatus_to_exitcode(status)} after {seconds:.1f} s, {mebibytes:.0f} MiB at its peak\n{said}"
    )


def _mebibytes(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / 1024


def _series(n_nodes: int, n_pods: int, times: Ints) -> Iterator[MetricSeries]:
    def one(name: str, value: float, labels: dict[str, str], rate: float = 0.0) -> MetricSeries:
        return MetricSeries(name, labels, times, value + rate * (times - times[0]))

    for number in range(n_nodes):
        node, address = f"node-{number}", f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"
        at = {"job": "node-exporter", "instance": f"{address}:9100"}
        for mode, rate in (("user", 10.0), ("system", 2.0), ("idle", 20.0)):
            yield one("node_cpu_seconds_total", 1e4, at | {"cpu": "0", "mode": mode}, rate)
        yield one("node_memory_MemTotal_bytes", 128e9, at)
        yield one("node_memory_MemAvailable_bytes", 80e9, at)
        for way in ("read", "written"):
            yield one(f"node_disk_{way}_bytes_total", 1e6, at | {"device": "sda"}, 1e6)
        for way in ("receive", "transmit"):
            yield one(f"node_network_{way}_bytes_total", 1e6, at | {"device": "eth0"}, 1e6)
        yield one("node_network_speed_bytes", 1.25e9, at | {"device": "eth0"})
        yield one("kube_node_info", 1, {"node": node, "internal_ip": address, "kubelet_version": "v1.33.2"})
        for family in ("capacity", "allocatable"):
            yield one(f"kube_node_status_{family}", 32, {"node": node, "resource": "cpu"})
            yield one(f"kube_node_status_{family}", 128e9, {"node": node, "resource": "memory"})
    for number in range(n_pods):
        service, node = number // _PODS_OF_A_SERVICE, f"node-{number % n_nodes}"
        rs, namespace = f"app-{service}-6d5f7c9b8d", f"team-{service % 100}"
        pod = {"namespace": namespace, "pod": f"{rs}-{number:x}"}
        uid = {"uid": f"{number:08x}-0000-4000-8000-000000000000"}
        owner = {"created_by_kind": "ReplicaSet", "created_by_name": rs, "node": node, "host_network": "false"}
        yield one("kube_pod_info", 1, pod | uid | owner)
        yield one("kube_pod_status_phase", 1, pod | uid | {"phase": "Running"})
        for resource_name, value in (("cpu", 0.2), ("memory", 5e8)):
            asked = pod | uid | {"container": "app", "resource": resource_name}
            yield one("kube_pod_container_resource_requests", value, asked)
        if number % _PODS_OF_A_SERVICE == 0:
            above = {"owner_kind": "Deployment", "owner_name": f"app-{service}", "owner_is_controller": "true"}
            yield one("kube_replicaset_owner", 1, {"namespace": namespace, "replicaset": rs, **above})
        inside = pod | {"node": node, "id": f"/kubepods/pod{number}"}
        container = inside | {"container": "app", "image": "x", "id": f"/kubepods/pod{number}/c"}
        for labels in (container, inside):
            yield one("container_cpu_usage_seconds_total", 1e3, labels | {"cpu": "total"}, 0.3)
            yield one("container_memory_working_set_bytes", 1e9, labels)
        for way in ("reads", "writes"):
            yield one(f"container_fs_{way}_bytes_total", 1e5, container | {"device": "/dev/sda"}, 1e4)
        for way in ("receive", "transmit"):
            yield one(f"container_network_{way}_bytes_total", 1e5, inside | {"interface": "eth0"}, 1e4)
