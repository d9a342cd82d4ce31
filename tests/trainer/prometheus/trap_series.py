"""Every trap of reading Kubernetes metrics, as series of one day. Each is asserted by its own test in test_traps."""

from __future__ import annotations

from typing import Any

import numpy as np

from testing.servers.openmetrics import MetricSeries
from tests.trainer.prometheus.scrapes import HOUR, MINUTE, Scrapes

MIB = 2.0**20


def trap_series() -> list[MetricSeries]:
    """All of them; between 02:30 and 02:45 nothing at all was scraped."""
    scrapes = Scrapes()
    for add in (_moves, _owners, _counts, _flaws, _twice, _network, _disk, _requests, _logs, _nodes):
        add(scrapes)
    return [_without_gap(series) for series in scrapes.series]


def _without_gap(series: MetricSeries) -> MetricSeries:
    at = series.times % 86_400
    kept = (at < 2.5 * HOUR) | (at >= 2.75 * HOUR)
    if series.name.startswith("kube_"):
        kept &= (at < 3 * HOUR) | (at >= 3.5 * HOUR)  # kube-state-metrics was away for half an hour
    return MetricSeries(series.name, series.labels, series.times[kept], series.values[kept])


def _moves(s: Scrapes) -> None:
    # A StatefulSet pod goes from n1 to n2 at 01:00; the series of its first life linger for four minutes.
    owner: dict[str, Any] = {"kind": "StatefulSet", "owner": "db"}
    s.pod("data", "db-0", "n1", 0, HOUR + 240, uid="first", **owner)
    s.pod("data", "db-0", "n2", HOUR, uid="second", **owner)
    s.cpu("data", "db-0", 1.0, 0, HOUR, node="n1")
    s.cpu("data", "db-0", 3.0, HOUR, node="n2")
    # A rollout renames the pod.
    s.pod("shop", "cart-5d9c7b8f6-aaaaa", "n1", 0, HOUR, kind="ReplicaSet", owner="cart-5d9c7b8f6", cpu=0.5)
    s.pod("shop", "cart-7bdf4c6c9-bbbbb", "n2", HOUR, kind="ReplicaSet", owner="cart-7bdf4c6c9", cpu=0.6)
    # One lived for seven minutes, one for two between ticks.
    s.pod("shop", "brief", "n1", HOUR + 4 * MINUTE, HOUR + 11 * MINUTE, cpu=0.7)
    s.pod("shop", "between", "n1", 2 * HOUR + 301, 2 * HOUR + 301 + 2 * MINUTE, cpu=0.7)


def _owners(s: Scrapes) -> None:
    def replica_set(name: str, kind: str, owner: str) -> None:
        controller = "true" if kind != "<none>" else "<none>"
        labels: dict[str, Any] = {"owner_kind": kind, "owner_name": owner, "owner_is_controller": controller}
        s.gauge("kube_replicaset_owner", 1, namespace="own", replicaset=name, **labels)

    replica_set("web-66c9b7d5f", "Deployment", "web")
    replica_set("canary-66c9b7d5f", "Rollout", "canary")
    replica_set("alone-66c9b7d5f", "<none>", "<none>")
    for name in ("web", "canary", "alone"):
        s.pod("own", f"{name}-66c9b7d5f-x", kind="ReplicaSet", owner=f"{name}-66c9b7d5f")
    tidy: dict[str, Any] = {"owner_kind": "CronJob", "owner_name": "tidy", "owner_is_controller": "true"}
    s.gauge("kube_job_owner", 1, 0, HOUR, namespace="own", job_name="tidy-29500000", **tidy)
    s.pod("own", "tidy-29500000-x", "n1", 0, HOUR, kind="Job", owner="tidy-29500000")
    s.gauge("kube_job_owner", 1, namespace="own", job_name="once", owner_kind="", owner_name="", owner_is_controller="")
    s.pod("own", "once-x", kind="Job", owner="once")
    s.pod("own", "bare")
    s.pod("own", "etcd-n1", "n1", kind="Node", owner="n1")
    s.pod("own", "logger-x", kind="DaemonSet", owner="logger")


def _counts(s: Scrapes) -> None:
    for replica, (begin, end) in enumerate(((0, 4), (1, 2), (1, 2))):
        name = f"api-5d9c7b8f6-{replica}"
        s.pod("scaled", name, "n1", begin * HOUR, end * HOUR, kind="ReplicaSet", owner="api-5d9c7b8f6")
    s.pod("scaled", "waiting", phase="Pending")
    s.pod("scaled", "finished", phase="Succeeded")


def _flaws(s: Scrapes) -> None:
    s.pod("flaws", "reset")
    s.cpu("flaws", "reset", 2.0, resets=[HOUR + 130])
    s.pod("flaws", "gap")
    s.cpu("flaws", "gap", 1.0, 0, HOUR)
    s.cpu("flaws", "gap", 1.0, 1.5 * HOUR)
    s.pod("flaws", "nan")
    s.memory("flaws", "nan", lambda t: np.where((t >= HOUR) & (t < HOUR + 600), np.nan, 100 * MIB))
    s.cpu("flaws", "orphan", 1.0)  # never listed by kube-state-metrics


def _twice(s: Scrapes) -> None:
    for replica in ("a", "b"):
        s.pod("twice", "scraped", cpu=None, prometheus_replica=replica)
        s.cpu("twice", "scraped", 1.5, prometheus_replica=replica)
    for instance in ("10.0.0.1:8080", "10.0.0.2:8080"):
        s.pod("twice", "listed", instance=instance)
    s.cpu("twice", "listed", 1.0)
    # The cgroup of the pod and the pause container contain what its two containers use once more.
    s.pod("twice", "cgroups")
    for container, rate in (("main", 1.0), ("side", 0.5), ("", 1.5), ("POD", 0.01)):
        s.cpu("twice", "cgroups", rate, container=container)
        s.memory("twice", "cgroups", rate * 100 * MIB, container)
    # A restarted container overlaps with its former self under another id.
    s.pod("twice", "restarted")
    s.cpu("twice", "restarted", 1.0, 0, HOUR + 60, id="/old")
    s.cpu("twice", "restarted", 1.0, HOUR, 4 * HOUR, id="/new")


def _network(s: Scrapes) -> None:
    def bytes_of(pod: str, interface: str, received: float, sent: float, **labels: str) -> None:
        where: dict[str, Any] = {"namespace": "net", "pod": pod, "interface": interface} | labels
        s.counter("container_network_receive_bytes_total", received, **where)
        s.counter("container_network_transmit_bytes_total", sent, **where)

    s.pod("net", "plain")
    bytes_of("plain", "eth0", 1000, 200)
    bytes_of("plain", "net1", 100, 20)  # a second network (Multus) is the pod's own
    bytes_of("plain", "lo", 5e6, 5e6)
    for interface in ("veth12", "cni0", "cali1", "tunl0", "docker0", "flannel.1", "cbr0", "dummy0", "kube-ipvs0"):
        bytes_of("plain", interface, 5e6, 5e6)
    s.pod("net", "docker")
    bytes_of("docker", "eth0", 1000, 200, container="POD")
    s.pod("net", "host", host_network=True, cpu=0.1)
    bytes_of("host", "eth0", 9e8, 9e8)


def _disk(s: Scrapes) -> None:
    def bytes_of(pod: str, read: float | None, written: float | None, device: str) -> None:
        where: dict[str, Any] = {"namespace": "disk", "pod": pod, "container": "main", "device": device}
        if read is not None:
            s.counter("container_fs_reads_bytes_total", read, **where)
        if written is not None:
            s.counter("container_fs_writes_bytes_total", written, **where)

    s.pod("disk", "both")
    for device in ("/dev/sda", "/dev/sda1", "/dev/dm-0", "/dev/md0", "/dev/loop0"):
        bytes_of("both", 300, 700, device)
    bytes_of("both", 10, 20, "nvme0n1")
    bytes_of("both", 10, 20, "nvme0n1p2")
    s.pod("disk", "writes")
    bytes_of("writes", None, 700, "/dev/vda")


def _requests(s: Scrapes) -> None:
    s.pod("req", "asks")
    s.pod("req", "resized", "n1", 0, HOUR, uid="small")
    s.pod("req", "resized", "n1", HOUR, 4 * HOUR, uid="large")
    for pod, uid, begin, end, container, cpu, memory in (
        ("asks", "uid-asks", 0, 4, "main", 0.5, 100 * MIB),
        ("asks", "uid-asks", 0, 4, "side", 0.25, 50 * MIB),
        ("resized", "large", 1, 4, "main", 0.2, 10 * MIB),
        ("resized", "small", 0, 1, "main", 2.0, 20 * MIB),
    ):
        for exporter in ("a", "b"):
            for resource, value in (("cpu", cpu), ("memory", memory)):
                labels: dict[str, Any] = {"namespace": "req", "pod": pod, "uid": uid, "container": container}
                labels |= {"resource": resource, "instance": exporter}
                s.gauge("kube_pod_container_resource_requests", value, begin * HOUR, end * HOUR, **labels)


def _logs(s: Scrapes) -> None:
    for number, node in enumerate(("n1", "n2"), start=1):
        s.pod("log", f"talks-{number}", node)
        s.pod("logging", f"collector-{number}", node, kind="DaemonSet", owner="collector")
        talks: dict[str, Any] = {"pod_namespace": "log", "pod_name": f"talks-{number}"}
        collector: dict[str, Any] = {"namespace": "logging", "pod": f"collector-{number}"}
        received, source = "vector_component_received_event_bytes_total", collector | {"component_kind": "source"}
        s.counter(received, 1000.0 * number, component_id="kubernetes_logs", **source, **talks)
        s.counter(received, 5.0, component_id="other", **source, **talks)
        s.counter(received, 9e9, component_kind="sink", component_id="loki", **talks)
        for metric, rate in (("promtail_read_bytes_total", 2000.0), ("loki_source_file_read_bytes_total", 3000.0)):
            for container in ("main", "side"):
                path = f"/var/log/pods/log_talks-{number}_uid-1/{container}/0.log"
                s.counter(metric, rate * number, path=path, resets=[HOUR + 130], **collector)
        s.counter("promtail_read_bytes_total", 9e9, path="/var/log/syslog", **collector)
        s.counter("fluentbit_input_bytes_total", 4000.0 * number, name="tail.0", **collector)
        s.counter("fluentbit_input_bytes_total", 10.0, name="systemd.1", **collector)

    def size(pod: str, value: object, container: str = "main") -> None:
        s.gauge("kubelet_container_log_filesystem_used_bytes", value, namespace="log", pod=pod, container=container)

    size("talks-1", lambda t: 100.0 * t + 1e5)
    size("talks-1", lambda t: 10.0 * t + 1e5, container="side")
    # Rotated once at 01:02: 10 MiB are compressed to 1 MiB.
    size("talks-2", lambda t: 1000.0 * t + np.where(t >= HOUR + 120, -9 * MIB, 0) + 12 * MIB)
    s.pod("log", "chatters", "n3")  # rotates every ten minutes
    size("chatters", lambda t: 20 * MIB + 10000.0 * (t % 600))
    s.pod("log", "capped", "n3")  # at its cap: what is written displaces as much
    size("capped", 49.9 * MIB)
    s.pod("log", "steady", "n3")  # measured, yet its node is not while the others are not
    size("steady", lambda t: 5.0 * t)
    s.pod("log", "quiet", "n4")
    size("quiet", 1e4)


def _nodes(s: Scrapes) -> None:
    for number in (1, 2, 3, 4):
        address = f"10.0.0.{number}" if number != 4 else "fd00::4"
        s.gauge("kube_node_info", 1, node=f"n{number}", internal_ip=address)
        for resource, value in (("cpu", 8.0), ("memory", 32 * 1024 * MIB)):
            s.gauge("kube_node_status_capacity", value, node=f"n{number}", resource=resource)
            s.gauge("kube_node_status_allocatable", value * 0.9, node=f"n{number}", resource=resource)
        # An address, a name with a port, a label node beside it, an IPv6 address.
        where: dict[str, Any] = {
            1: {"instance": "10.0.0.1:9100"},
            2: {"instance": "n2:9100"},
            3: {"instance": "10.9.9.9:9100", "node": "n3"},
            4: {"instance": "[fd00::4]:9100"},
        }[number]
        for replica in ("a", "b"):
            both = where | {"prometheus_replica": replica}
            for mode, rate in (("user", 4.0), ("system", 1.0), ("idle", 3.0), ("iowait", 0.5), ("steal", 0.25)):
                for cpu in (0, 1):
                    s.counter("node_cpu_seconds_total", rate / 2, mode=mode, cpu=cpu, **both)
            s.gauge("node_memory_MemTotal_bytes", 32 * 1024 * MIB, **both)
            s.gauge("node_memory_MemAvailable_bytes", 30 * 1024 * MIB, **both)
        for device in ("sda", "sda1", "sda2", "dm-0", "md0", "loop0", "nvme0n1", "nvme0n1p1"):
            s.counter("node_disk_read_bytes_total", 100, device=device, **where)
            s.counter("node_disk_written_bytes_total", 200, device=device, **where)
        for device in ("eth0", "eth0.100", "bond0", "veth12ab", "cni0", "cali123", "docker0", "lo", "enp3s0"):
            s.counter("node_network_receive_bytes_total", 1000, device=device, **where)
            s.counter("node_network_transmit_bytes_total", 500, device=device, **where)
            s.gauge("node_network_speed_bytes", -1.0 if device == "enp3s0" else 1.25e9, device=device, **where)
