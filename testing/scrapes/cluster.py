"""A small invented cluster as a healthy scrape shows it, and what its pods and nodes truly use.

Six nodes of four cores, and 20 pods: Deployments (one with a native sidecar), a StatefulSet with two containers a pod,
a DaemonSet and a static pod on the host network, the running pod of a CronJob. The kubelet's cAdvisor on containerd,
kube-state-metrics 2.13, node-exporter by address, Vector for logs; a scrape every two minutes, two hours of them.

Every rate is constant, so that the mean of a reading is the truth whatever the window. `testing.scrapes.bends` changes
what is scraped; the truth stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Floats, Ints
from forecast.resources import RESOURCES
from testing.servers.openmetrics import MetricSeries

SCRAPE_SECONDS, STEP_SECONDS, N_TICKS = 120, 300, 24
_BEFORE_SECONDS = 1200  # scraped before the first tick, so that its window is full

CORES, MEMORY_BYTES, SPEED = 4.0, 16e9, 1.25e9
RESERVED_CORES, RESERVED_BYTES = 0.2, 1e9
_BESIDES_PODS = (0.3, 9e8, 2e4, 1e4)  # cpu, memory, disk, network of a node
_IMAGE, _PAUSE = "registry.example.org/x:1", "registry.k8s.io/pause:3.10"
_PAUSE_CORES, _PAUSE_BYTES = 0.0001, 3e5


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    ip: str


@dataclass(frozen=True, slots=True)
class Pod:
    """containers: name -> share of what the pod uses; asks: (cores, bytes) by container; usage: by RESOURCES.

    top     : Kind/name of the service
    sidecar : the container of `containers` that is an init container which stays
    """

    namespace: str
    name: str
    node: Node
    owner: tuple[str, str]
    top: str
    containers: dict[str, float]
    asks: dict[str, tuple[float, float]]
    usage: tuple[float, ...]
    host_network: bool = False
    sidecar: str = ""

    @property
    def uid(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.name}.{self.namespace}"))


@dataclass(frozen=True, slots=True)
class Cluster:
    """end: unix time of the last tick. series: what is scraped of it until then."""

    end: int
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    series: tuple[MetricSeries, ...]

    def node_usage(self, node: Node) -> Floats:
        """(n_resources,) of a node: its pods, and what runs besides. Host-network pods add nothing to the network."""
        total = np.array([*_BESIDES_PODS, 0.0])
        for pod in self.pods:
            if pod.node == node:
                total += np.array(pod.usage) * [1, 1, 1, not pod.host_network, 1]
        return total


@dataclass
class _Scrapes:
    times: Ints
    series: list[MetricSeries] = field(default_factory=list)

    def counter(self, name: str, rate: float, labels: dict[str, str]) -> None:
        values = 1e4 * (rate + 1) + rate * (self.times - self.times[0])
        self.series.append(MetricSeries(name, labels, self.times, values))

    def gauge(self, name: str, value: float, labels: dict[str, str]) -> None:
        self.series.append(MetricSeries(name, labels, self.times, np.full(len(self.times), value)))


def healthy_cluster(end: int, domain: str = "") -> Cluster:
    """end: unix time, a multiple of five minutes. domain: part of the names that Kubernetes has for nodes."""
    nodes = tuple(Node(f"node-{i}{domain}", f"10.0.0.{10 + i}") for i in range(1, 7))
    pods = tuple(_pods(nodes, end))
    begin = end - N_TICKS * STEP_SECONDS - _BEFORE_SECONDS
    scrapes = _Scrapes(np.arange(begin + 10, end, SCRAPE_SECONDS))
    unscraped = Cluster(end, nodes, pods, ())
    for pod in pods:
        _cadvisor(scrapes, pod)
        _state_of_pod(scrapes, pod)
        _logs(scrapes, pod)
    for kind, name, label in (("replicaset", "ReplicaSet", "replicaset"), ("job", "Job", "job_name")):
        for namespace, owner, top in sorted({(p.namespace, p.owner[1], p.top) for p in pods if p.owner[0] == name}):
            above = dict(zip(("owner_kind", "owner_name"), top.split("/"), strict=True))
            labels = {**_state(), "namespace": namespace, label: owner, **above, "owner_is_controller": "true"}
            scrapes.gauge(f"kube_{kind}_owner", 1, labels)
    for node in nodes:
        usage = unscraped.node_usage(node)
        _node_exporter(scrapes, node, usage)
        _root_cgroup(scrapes, node, usage)
        _state_of_node(scrapes, node)
    return Cluster(end, nodes, pods, tuple(scrapes.series))


def _pods(nodes: Sequence[Node], end: int) -> list[Pod]:
    pods: list[Pod] = []

    def add(namespace: str, name: str, owner: tuple[str, str], top: str, size: float, **more: object) -> None:
        containers = more.pop("containers", None) or {top.partition("/")[2]: 1.0}
        node = more.pop("node", None) or nodes[len(pods) % len(nodes)]
        assert isinstance(containers, dict) and isinstance(node, Node)
        asks = {container: (0.4 * share, 4e8 * share) for container, share in containers.items()}
        usage = (0.3 * size, 3e8 * size, 2e5 * size, 1e5 * size, 1e3 * size)
        pods.append(Pod(namespace, name, node, owner, top, containers, asks, usage, **more))  # type: ignore[arg-type]

    for number in range(5):
        web = ("ReplicaSet", "web-6d5f7c9b8d")
        add("shop", f"web-6d5f7c9b8d-{'bcdfg'[number]}x7zq", web, "Deployment/web", 0.5)
    for number in range(4):
        api = ("ReplicaSet", "api-7bdf4c6c9")
        both = {"api": 0.7, "mesh": 0.3}
        name = f"api-7bdf4c6c9-{'hjkl'[number]}w8vn"
        add("shop", name, api, "Deployment/api", 1.0, containers=both, sidecar="mesh")
    for number in range(3):
        both = {"db": 0.8, "backup": 0.2}
        add("data", f"db-{number}", ("StatefulSet", "db"), "StatefulSet/db", 1.5, containers=both)
    for number, node in enumerate(nodes):
        name = f"agent-{'mnpqrs'[number]}2xvb"
        add("kube-system", name, ("DaemonSet", "agent"), "DaemonSet/agent", 0.2, node=node, host_network=True)
    etcd = f"etcd-{nodes[0].name}"
    add("kube-system", etcd, ("Node", nodes[0].name), "StaticPod/etcd", 0.6, node=nodes[0], host_network=True)
    job = f"report-{(end - 10_800) // 60}"
    add("batch", f"{job}-t4kzp", ("Job", job), "CronJob/report", 0.8)
    return pods


def _cadvisor(scrapes: _Scrapes, pod: Pod) -> None:
    where = _kubelet(pod.node) | {"namespace": pod.namespace, "pod": pod.name}
    whole = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod.uid.replace('-', '_')}.slice"
    cpu, memory, disk, network, _ = pod.usage

    def scope(container: str) -> dict[str, str]:
        name = uuid.uuid5(uuid.NAMESPACE_DNS, container + pod.uid).hex
        return where | {"id": f"{whole}/cri-containerd-{name}.scope", "name": name}

    pause = scope("pause") | {"image": _PAUSE}
    for labels, share, extra in (
        *((scope(c) | {"container": c, "image": _IMAGE}, share, 0) for c, share in pod.containers.items()),
        (pause, 0.0, 1),
        (where | {"id": whole}, 1.0, 1),
    ):
        scrapes.counter(
            "container_cpu_usage_seconds_total", cpu * share + extra * _PAUSE_CORES, labels | {"cpu": "total"}
        )
        scrapes.gauge("container_memory_working_set_bytes", memory * share + extra * _PAUSE_BYTES, labels)
        if "container" in labels:
            scrapes.counter("container_cpu_cfs_periods_total", 10.0, labels)
            scrapes.counter("container_cpu_cfs_throttled_periods_total", 0.1, labels)
            for way, part in (("reads", 0.4), ("writes", 0.6)):
                name = f"container_fs_{way}_bytes_total"
                scrapes.counter(name, disk * share * part, labels | {"device": "/dev/sda"})
    interfaces = {"eth0": network}
    if pod.host_network:  # those of the host
        interfaces = {"eth0": 5e6, "cali1a2b3c4d5e6": 1e6, "vxlan.calico": 1e5}
    for interface, rate in interfaces.items():
        for way in ("receive", "transmit"):
            name = f"container_network_{way}_bytes_total"
            scrapes.counter(name, rate / 2, pause | {"interface": interface})


def _root_cgroup(scrapes: _Scrapes, node: Node, usage: Floats) -> None:
    root = _kubelet(node) | {"id": "/"}
    scrapes.counter("container_cpu_usage_seconds_total", usage[0], root | {"cpu": "total"})
    scrapes.gauge("container_memory_working_set_bytes", usage[1], root)
    for way in ("reads", "writes"):
        scrapes.counter(f"container_fs_{way}_bytes_total", usage[2] / 2, root | {"device": "/dev/sda"})
    for way in ("receive", "transmit"):
        scrapes.counter(f"container_network_{way}_bytes_total", usage[3] / 2, root | {"interface": "eth0"})
    scrapes.gauge("machine_cpu_cores", CORES, _kubelet(node))
    scrapes.gauge("machine_memory_bytes", MEMORY_BYTES, _kubelet(node))


def _state_of_pod(scrapes: _Scrapes, pod: Pod) -> None:
    of_pod = _state() | {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid}
    kind, name = pod.owner
    number = sum(map(ord, pod.name)) % 200 + 2
    info = {"node": pod.node.name, "host_ip": pod.node.ip, "created_by_kind": kind, "created_by_name": name}
    info["pod_ip"] = pod.node.ip if pod.host_network else f"10.244.{pod.node.ip[-1]}.{number}"
    info["host_network"] = "true" if pod.host_network else "false"
    scrapes.gauge("kube_pod_info", 1, of_pod | info)
    for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
        scrapes.gauge("kube_pod_status_phase", float(phase == "Running"), of_pod | {"phase": phase})
    for container, asked in pod.asks.items():
        init = "init_" if container == pod.sidecar else ""
        labels = of_pod | {"container": container}
        scrapes.gauge(f"kube_pod_{init}container_status_restarts_total", 0, labels)
        for resource, unit, value in (("cpu", "core", asked[0]), ("memory", "byte", asked[1])):
            metric = f"kube_pod_{init}container_resource_requests"
            scrapes.gauge(metric, value, labels | {"node": pod.node.name, "resource": resource, "unit": unit})
        if init:
            scrapes.gauge("kube_pod_init_container_info", 1, labels | {"restart_policy": "Always", "image": _IMAGE})


def _state_of_node(scrapes: _Scrapes, node: Node) -> None:
    of_node = _state() | {"node": node.name}
    what = {"kubelet_version": "v1.33.2", "container_runtime_version": "containerd://1.7.27", "os_image": "Ubuntu"}
    scrapes.gauge("kube_node_info", 1, of_node | {"internal_ip": node.ip} | what)
    for family, cores, memory in (
        ("capacity", CORES, MEMORY_BYTES),
        ("allocatable", CORES - RESERVED_CORES, MEMORY_BYTES - RESERVED_BYTES),
    ):
        for resource, unit, value in (("cpu", "core", cores), ("memory", "byte", memory), ("pods", "integer", 110.0)):
            scrapes.gauge(f"kube_node_status_{family}", value, of_node | {"resource": resource, "unit": unit})


def _node_exporter(scrapes: _Scrapes, node: Node, usage: Floats) -> None:
    where = {"job": "node-exporter", "instance": f"{node.ip}:9100", "namespace": "monitoring"}
    where["pod"] = f"node-exporter-{node.ip[-1]}x8kq"
    cpu, memory, disk, network, _ = usage.tolist()
    for core in range(int(CORES)):
        shares = {"user": 0.7 * cpu, "system": 0.3 * cpu, "idle": CORES - cpu - 0.1, "iowait": 0.06, "steal": 0.04}
        for mode, rate in shares.items():
            labels = where | {"cpu": str(core), "mode": mode}
            scrapes.counter("node_cpu_seconds_total", rate / CORES, labels)
    available = MEMORY_BYTES - memory
    parts = {"MemTotal": MEMORY_BYTES, "MemAvailable": available}
    parts |= {"MemFree": 0.5 * available, "Buffers": 0.1 * available, "Cached": 0.4 * available}
    for part, value in parts.items():
        scrapes.gauge(f"node_memory_{part}_bytes", value, where)
    for device in ("sda", "sda1", "dm-0", "loop0"):
        scrapes.counter("node_disk_read_bytes_total", 0.4 * disk, where | {"device": device})
        scrapes.counter("node_disk_written_bytes_total", 0.6 * disk, where | {"device": device})
    for device in ("eth0", "cali1a2b3c4d5e6", "lo", "docker0"):
        for way in ("receive", "transmit"):
            scrapes.counter(f"node_network_{way}_bytes_total", network / 2, where | {"device": device})
    scrapes.gauge("node_network_speed_bytes", SPEED, where | {"device": "eth0"})
    scrapes.gauge("node_uname_info", 1, where | {"nodename": node.name})


def _logs(scrapes: _Scrapes, pod: Pod) -> None:
    labels = {"job": "vector", "component_kind": "source", "component_id": "pods", "component_type": "kubernetes_logs"}
    labels |= {"pod_namespace": pod.namespace, "pod_name": pod.name, "instance": f"{pod.node.ip}:8686"}
    for container, share in pod.containers.items():
        name = "vector_component_received_event_bytes_total"
        scrapes.counter(name, pod.usage[-1] * share, labels | {"container_name": container})


def _kubelet(node: Node) -> dict[str, str]:
    path = "/metrics/cadvisor"
    return {"job": "kubelet", "metrics_path": path, "instance": f"{node.ip}:10250", "node": node.name}


def _state() -> dict[str, str]:
    return {"job": "kube-state-metrics", "instance": "10.244.3.9:8080"}


assert len(RESOURCES) == 5  # the order of Pod.usage
