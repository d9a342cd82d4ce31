"""What cAdvisor, kube-state-metrics, node-exporter and promtail would expose of a Cluster, as series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from base.arrays import Bools, Floats, Ints
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK
from testing.servers.openmetrics import MetricSeries

if TYPE_CHECKING:
    from testing.measured_cluster.cluster import Cluster, PodLife

_STEP = 300
_CADVISOR = (10, 120)  # offset and interval of scrapes, seconds: at least two in every five minutes
_STATE = (30, 240)  # never at a tick: a pod that ends at a tick is out of sight at the next one
_FACTS = (30, 1800)  # what is looked up as "the last of the day"


def pod_series(cluster: Cluster) -> Iterator[MetricSeries]:
    """Series about pods."""
    replica_sets: dict[tuple[str, str], tuple[str, str]] = {}
    jobs: dict[tuple[str, str], tuple[int, int]] = {}
    for life in cluster.lives:
        yield from _cadvisor(cluster, life)
        yield from _state(cluster, life)
        kind, name = life.owner
        if kind == "ReplicaSet":
            top = life.top.split("/")
            replica_sets[life.namespace, name] = ("<none>", "<none>") if top[0] == "ReplicaSet" else (top[0], top[1])
        elif kind == "Job":
            jobs[life.namespace, name] = (life.begin, life.end)
    everything = _scrapes(cluster, 0, cluster.n_ticks, _FACTS)
    for (namespace, name), (kind, owner) in replica_sets.items():
        controller = "<none>" if kind == "<none>" else "true"
        labels = {"namespace": namespace, "replicaset": name, "owner_kind": kind, "owner_name": owner}
        labels["owner_is_controller"] = controller
        yield MetricSeries("kube_replicaset_owner", labels, everything, np.ones(len(everything)))
    for (namespace, name), (begin, end) in jobs.items():
        times = _scrapes(cluster, begin, end, _STATE)
        labels = {"namespace": namespace, "job_name": name, "owner_kind": "CronJob", "owner_name": "report"}
        labels["owner_is_controller"] = "true"
        yield MetricSeries("kube_job_owner", labels, times, np.ones(len(times)))


def node_series(cluster: Cluster) -> Iterator[MetricSeries]:
    """Series about nodes: totals with everything in them that must not be counted twice, capacities, names."""
    from testing.measured_cluster.cluster import CORES, MEMORY_BYTES, NETWORK_SPEED

    total = cluster.base.copy()
    for life in cluster.lives:
        total[life.node, life.begin : life.end] += life.usage
    times = _kept(cluster, _scrapes(cluster, 0, cluster.n_ticks, _CADVISOR), cluster.gap)
    facts = _scrapes(cluster, 0, cluster.n_ticks, _FACTS)
    for number, usage in enumerate(total):
        name, address = f"node-{number}", f"10.0.0.{number}"
        where = {"instance": f"{address}:9100", "job": "node-exporter"}

        def counter(metric: str, rates: Floats, where: dict[str, str] = where, **labels: str) -> MetricSeries:
            return MetricSeries(metric, where | labels, times, _counter(cluster, 0, rates, times))

        yield counter("node_cpu_seconds_total", usage[:, CPU] * 0.7, cpu="0", mode="user")
        yield counter("node_cpu_seconds_total", usage[:, CPU] * 0.3, cpu="1", mode="system")
        yield counter("node_cpu_seconds_total", CORES - usage[:, CPU], cpu="0", mode="idle")
        yield counter("node_disk_read_bytes_total", usage[:, DISK] * 0.4, device="sda")
        yield counter("node_disk_written_bytes_total", usage[:, DISK] * 0.6, device="sda")
        yield counter("node_disk_written_bytes_total", usage[:, DISK] * 0.6, device="dm-0")
        yield counter("node_network_receive_bytes_total", usage[:, NETWORK] * 0.5, device="eth0")
        yield counter("node_network_transmit_bytes_total", usage[:, NETWORK] * 0.5, device="eth0")
        yield counter("node_network_receive_bytes_total", usage[:, NETWORK] * 0.5, device="veth1234")
        tick = (times - cluster.start) // _STEP
        yield MetricSeries("node_memory_MemTotal_bytes", where, times, np.full(len(times), MEMORY_BYTES))
        yield MetricSeries("node_memory_MemAvailable_bytes", where, times, MEMORY_BYTES - usage[tick, MEMORY])
        one = np.ones(len(facts))
        yield MetricSeries("node_network_speed_bytes", where | {"device": "eth0"}, facts, NETWORK_SPEED * one)
        yield MetricSeries("kube_node_info", {"node": name, "internal_ip": address}, facts, one)
        for kind, less in (("capacity", (0.0, 0.0)), ("allocatable", (0.5, 2.0**30))):
            for resource, value in (("cpu", CORES - less[0]), ("memory", MEMORY_BYTES - less[1])):
                yield MetricSeries(f"kube_node_status_{kind}", {"node": name, "resource": resource}, facts, value * one)


def _cadvisor(cluster: Cluster, life: PodLife) -> Iterator[MetricSeries]:
    times = _kept(cluster, _scrapes(cluster, life.begin, life.end, _CADVISOR), cluster.gap)
    node = f"node-{life.node}"
    where = {"namespace": life.namespace, "pod": life.pod, "node": node}
    container = where | {"container": "main"}
    resets = _reset_times(cluster, life, times)

    def counter(metric: str, labels: dict[str, str], rates: Floats) -> MetricSeries:
        return MetricSeries(metric, labels, times, _counter(cluster, life.begin, rates, times, resets))

    usage = life.usage
    yield counter("container_cpu_usage_seconds_total", container, usage[:, CPU])
    if life.namespace == "data":  # the pod's own cgroup, for some
        yield counter("container_cpu_usage_seconds_total", where | {"container": ""}, usage[:, CPU])
    tick = (times - cluster.start) // _STEP - life.begin
    yield MetricSeries("container_memory_working_set_bytes", container, times, usage[tick, MEMORY])
    yield counter("container_fs_reads_bytes_total", container | {"device": "/dev/sda"}, usage[:, DISK] * 0.4)
    yield counter("container_fs_writes_bytes_total", container | {"device": "/dev/sda"}, usage[:, DISK] * 0.6)
    yield counter("container_network_receive_bytes_total", where | {"interface": "eth0"}, usage[:, NETWORK] * 0.7)
    yield counter("container_network_transmit_bytes_total", where | {"interface": "eth0"}, usage[:, NETWORK] * 0.3)
    path = f"/var/log/pods/{life.namespace}_{life.pod}_{life.uid}/main/0.log"
    collector = {"namespace": "logging", "pod": f"promtail-{life.node}", "path": path}
    rotations = times[np.flatnonzero(np.diff(times // 43_200) > 0)]  # twice a day
    yield MetricSeries(
        "promtail_read_bytes_total", collector, times, _counter(cluster, life.begin, usage[:, LOG], times, rotations)
    )


def _state(cluster: Cluster, life: PodLife) -> Iterator[MetricSeries]:
    times = _kept(cluster, _scrapes(cluster, life.begin, life.end, _STATE), cluster.gap | cluster.silent)
    labels = {"namespace": life.namespace, "pod": life.pod, "uid": life.uid}
    info = labels | {
        "node": f"node-{life.node}",
        "created_by_kind": life.owner[0],
        "created_by_name": life.owner[1],
        "host_network": "false",
    }
    yield MetricSeries("kube_pod_info", info, times, np.ones(len(times)))
    yield MetricSeries("kube_pod_status_phase", labels | {"phase": "Running"}, times, np.ones(len(times)))
    seldom = times[::7] if len(times) > 7 else times
    for resource, value in zip(("cpu", "memory"), life.requests, strict=True):
        request = labels | {"container": "main", "resource": resource}
        yield MetricSeries("kube_pod_container_resource_requests", request, seldom, np.full(len(seldom), value))


def _scrapes(cluster: Cluster, begin: int, end: int, every: tuple[int, int]) -> Ints:
    """Scrape times within ticks begin..end: strictly inside, so that no value belongs to two ticks."""
    offset, interval = every
    first = (begin * _STEP - offset) // interval + 1
    last = (end * _STEP - 1 - offset) // interval
    return cluster.start + offset + np.arange(first, last + 1) * interval


def _kept(cluster: Cluster, times: Ints, missing: Bools) -> Ints:
    kept: Ints = times[~missing[(times - cluster.start) // _STEP]]
    return kept


def _reset_times(cluster: Cluster, life: PodLife, times: Ints) -> Ints:
    """Resets happen right after a scrape: what is logged between the last scrape and a reset is lost for ever."""
    wanted = cluster.start + np.array(life.resets, dtype=np.int64) * _STEP
    return (
        times[np.minimum(np.searchsorted(times, wanted), len(times) - 1)] if len(wanted) and len(times) else times[:0]
    )


def _counter(cluster: Cluster, begin: int, rates: Floats, times: Ints, resets: Ints | None = None) -> Floats:
    """(n_times,) a counter that grows by rates[tick] per second, from 0 again after each reset."""
    # It began long ago: rate() extrapolates to zero no further than a counter's value allows.
    grown = np.concatenate([[0.0], np.cumsum(rates * _STEP)]) + 1e4 * (rates.max(initial=0) + 1)
    elapsed = times - cluster.start - begin * _STEP
    tick = elapsed // _STEP
    values: Floats = grown[tick] + rates[tick] * (elapsed - tick * _STEP)
    if resets is None:
        return values
    result = values.copy()
    for reset in resets.tolist():
        at = int(np.searchsorted(times, reset))
        result[times > reset] = values[times > reset] - values[at]
    return result
