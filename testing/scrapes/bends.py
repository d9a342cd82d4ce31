"""Ways in which a scrape differs from the healthy one, and what is right then.

A bend is right if the figures are those of the truth (`says` is empty), or if the reading is refused, or remarked on,
with a sentence that contains `says`. `lacks` names the figures that may be unknown without a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import Bools, Floats, Ints
from testing.scrapes.changing import (
    CADVISOR,
    NODE_EXPORTER,
    STATE,
    Change,
    Match,
    Series,
    added,
    also,
    as_gauge,
    drop,
    host,
    kept,
    labelled,
    moved,
    on_half,
    parts,
    renamed,
    scaled,
    summed,
    then,
    valued,
    where,
)
from testing.scrapes.cluster import SCRAPE_SECONDS
from testing.scrapes.judging import Reading
from testing.servers.openmetrics import MetricSeries


@dataclass(frozen=True, slots=True)
class Bend:
    """change: of the healthy scrape. says: what must be in what is said; "" = the figures must be true, nothing else.

    domain : of the names that Kubernetes has for nodes
    """

    change: Change
    says: str = ""
    lacks: tuple[str, ...] = ()
    domain: str = ""

    def verdict(self, reading: Reading) -> str:
        """ "right" or "explicit" where the reading is what it should be; else what is wrong with it."""
        if self.says:
            return "explicit" if reading.says(self.says) else f"not said: {self.says!r}; {reading}"
        wrong = [
            one for one in reading.differences if not ("unknown" in one and any(map(one.__contains__, self.lacks)))
        ]
        return "right" if not (wrong or reading.refused or reading.findings) else f"not right: {wrong}; {reading}"


_CPU, _MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
_FS, _NET = "container_fs_.*", "container_network_.*"
_USAGE = f"{_CPU}|{_MEMORY}"
_OF_CONTAINERS = where(CADVISOR, container=".+")
_OF_PODS = where(CADVISOR, pod=".+")
_PAUSE = where(CADVISOR, container="", image=".+")
_SLICES = where(CADVISOR, container="", image="", pod=".+")
_REQUESTS = "kube_pod_(init_)?container_resource_requests"
_ROOT = where(CADVISOR, id="/")
_LOGS = where("vector_.*")
_EXPORTER = where(NODE_EXPORTER)


def _named(one: MetricSeries, name: str, factor: float = 1.0, /, **labels: str) -> MetricSeries:
    return MetricSeries(name, {k: v for k, v in labels.items() if v}, one.times, one.values * factor)


def _resource_endpoint(cores: str = _CPU) -> Change:
    """The kubelet's /metrics/resource: its containers have the names of cAdvisor and fewer labels; pods and nodes."""
    path = {"job": "kubelet", "metrics_path": "/metrics/resource"}
    few = ("namespace", "pod", "container", "node", "instance")
    return then(
        summed(where(_CPU, container=".+"), few, cores, **path),
        summed(where(_MEMORY, container=".+"), few, _MEMORY, **path),
        summed(
            where(_CPU, container="", image="", pod=".+"), (*few[:2], *few[3:]), "pod_cpu_usage_seconds_total", **path
        ),
        summed(
            where(_MEMORY, container="", image="", pod=".+"),
            (*few[:2], *few[3:]),
            "pod_memory_working_set_bytes",
            **path,
        ),
        summed(where(_CPU, id="/"), few[3:], "node_cpu_usage_seconds_total", **path),
        summed(where(_MEMORY, id="/"), few[3:], "node_memory_working_set_bytes", **path),
    )


def _windows(half: bool = True) -> Change:
    """windows_exporter instead of node-exporter on half of the nodes."""
    here: Match = on_half(NODE_EXPORTER) if half else _EXPORTER
    return then(
        added(lambda series: [new for one in series if here(one) for new in _as_windows(one)]),
        lambda series: drop(here)(series),
        labelled(on_half("kube_node_info"), os_image="Windows Server 2022 Datacenter"),
    )


def _as_windows(one: MetricSeries) -> list[MetricSeries]:
    at = {"job": "windows-exporter", "instance": host(one.labels) + ":9182"}
    mode, device = one.labels.get("mode", ""), one.labels.get("device", "")
    modes = {"user": "user", "system": "privileged", "idle": "idle", "iowait": "idle", "steal": "idle"}
    if one.name == "node_cpu_seconds_total" and mode in ("user", "system", "idle"):
        return [_named(one, "windows_cpu_time_total", **at, core=f"0,{one.labels['cpu']}", mode=modes[mode])]
    if one.name == "node_memory_MemTotal_bytes":
        return [_named(one, "windows_cs_physical_memory_bytes", **at)]
    if one.name == "node_memory_MemAvailable_bytes":
        return [_named(one, "windows_memory_available_bytes", **at)]
    ways = {"receive": "windows_net_bytes_received_total", "transmit": "windows_net_bytes_sent_total"}
    for way, name in ways.items():
        if one.name == f"node_network_{way}_bytes_total" and device == "eth0":
            return [_named(one, name, **at, nic="Intel_R__82599")]
    for way, name in (("read", "read"), ("written", "write")):
        if one.name == f"node_disk_{way}_bytes_total" and device == "sda":
            disk = f"windows_logical_disk_{name}_bytes_total"
            return [_named(one, disk, **at, volume="C:"), _named(one, disk, **at, volume="_Total")]
    return []


def _old_state() -> Change:
    """Names of kube-state-metrics 1.x, which had no resource label, no uid and no host_network."""
    families = "kube_pod_(?:init_)?container_resource_requests|kube_node_status_(?:capacity|allocatable)"
    units = {"cpu": "cpu_cores", "memory": "memory_bytes", "pods": "pods"}

    def old(series: Series) -> list[MetricSeries]:
        out = []
        for one in series:
            if where(families)(one):
                labels = {k: v for k, v in one.labels.items() if k not in ("resource", "unit", "uid")}
                one = replace(one, name=f"{one.name}_{units[one.labels['resource']]}", labels=labels)
            out.append(one)
        return out

    return then(
        old,
        labelled(where("kube_pod_info"), host_network="", uid=""),
        labelled(where("kube_pod_status_phase"), uid=""),
        labelled(where("kube_pod_info", created_by_kind="Node"), created_by_kind="<none>", created_by_name="<none>"),
        drop(where("kube_node_info")),
    )


def _cgroups_v1() -> Change:
    """cgroupfs instead of systemd: /kubepods/burstable/pod<uid>/<container>."""

    def path(labels: dict[str, str]) -> dict[str, str]:
        if "pod" not in labels:
            return {}
        parts_ = labels["id"].split("/")
        uid = parts_[3].removeprefix("kubepods-burstable-pod").removesuffix(".slice").replace("_", "-")
        inside = "/" + parts_[4].removeprefix("cri-containerd-").removesuffix(".scope") if len(parts_) > 4 else ""
        return {"id": f"/kubepods/burstable/pod{uid}{inside}"}

    return labelled(where(CADVISOR), path)


def _collector(name: str, factor: float = 1.0) -> Change:
    """A collector that names pods by the path of their log file."""

    def of(series: Series) -> list[MetricSeries]:
        out = []
        for one in filter(_LOGS, series):
            labels = one.labels
            pod, namespace = labels["pod_name"], labels["pod_namespace"]
            path = f"/var/log/pods/{namespace}_{pod}_8a1f/{labels['container_name']}/0.log"
            out.append(_named(one, name, factor, job="collector", path=path))
        return out

    return added(of)


def _kubelet_log_gauge(series: Series) -> list[MetricSeries]:
    out = []
    for one in filter(_LOGS, series):
        labels = {"namespace": one.labels["pod_namespace"], "pod": one.labels["pod_name"]}
        labels |= {"container": one.labels["container_name"], "job": "kubelet"}
        out.append(_named(one, "kubelet_container_log_filesystem_used_bytes", **labels))
    return out


def _second(times: Ints) -> Bools:
    return np.asarray(times >= times[len(times) // 2])


def _first(times: Ints) -> Bools:
    return ~_second(times)


def _slower(seconds: int, names: str = ".*") -> Change:
    """Keep one scrape of several, so that they lie `seconds` apart."""
    return kept(where(names), lambda times: np.asarray((times - times[0]) % seconds < SCRAPE_SECONDS))


def _restarted(values: Floats, times: Ints) -> Floats:
    """The counter begins again at 0 in the middle."""
    middle = len(values) // 2
    return np.where(np.arange(len(values)) >= middle, values - values[middle - 1], values)


def _address_changes(series: Series) -> Series:
    """node-6 gets another address in the middle, and node-5 takes its old one."""
    swapped = {"10.0.0.15": "10.0.0.16", "10.0.0.16": "10.0.0.77"}
    names = ("instance", "internal_ip", "host_ip", "pod_ip")

    def later(labels: dict[str, str]) -> dict[str, str]:
        return {
            name: labels[name].replace(old, new)
            for name in names
            for old, new in swapped.items()
            if labels.get(name, "").split(":")[0] == old
        }

    theirs: Match = lambda one: bool(later(dict(one.labels)))  # noqa: E731
    after = [one for one in kept(theirs, _second)(series) if theirs(one)]
    return [*kept(theirs, _first)(series), *labelled(theirs, later)(after)]


def _new_containers(series: Series) -> Series:
    """The containers of the StatefulSet begin again in the middle, under other ids."""
    its: Match = where(CADVISOR, container="db|backup")
    new = labelled(its, lambda had: {"id": had["id"].replace("cri-containerd-", "cri-containerd-f")})
    before, after = kept(its, _first)(series), [one for one in kept(its, _second)(series) if its(one)]
    return [*before, *valued(where(".*_total"), lambda values, times: values - values[0])(new(after))]


def _foreign_machines(series: Series) -> list[MetricSeries]:
    """Two databases outside the cluster, busier than its nodes."""
    out = []
    for one in series:
        if _EXPORTER(one) and one.labels["instance"] in ("10.0.0.11:9100", "10.0.0.12:9100"):
            there = one.labels["instance"].replace("10.0.0.1", "192.168.7.1")
            labels = {**one.labels, "instance": there, "nodename": "database-" + there[-6]}
            labels = {
                k: v
                for k, v in labels.items()
                if k not in ("pod", "namespace") and (k != "nodename" or one.name == "node_uname_info")
            }
            out.append(MetricSeries(one.name, labels, one.times, one.values * 1.5))
    return out


def _second_cluster(label: str) -> Change:
    """The same names once more, with three times the usage, behind one server."""
    every: Match = lambda one: True  # noqa: E731
    far = labelled(
        every,
        lambda labels: {
            k: labels[k].replace("10.0.0.", "10.8.0.")
            for k in ("instance", "internal_ip", "host_ip", "pod_ip")
            if k in labels
        },
    )
    busy = scaled(where("container_(cpu|fs|network).*|node_(disk|network).*"), 3.0)
    other = lambda labels: {"uid": labels["uid"][::-1]} if "uid" in labels else {}  # noqa: E731
    return then(
        labelled(every, lambda had: {label: "eu"} if label else {}),
        also(every, far, busy, labelled(every, other), labelled(every, lambda had: {label: "us"} if label else {})),
    )


def _replicas(series: Series) -> list[MetricSeries]:
    out = []
    for one in series:
        for replica in ("a", "b"):
            shift = 0 if replica == "a" else 7
            labels = {**one.labels, "prometheus_replica": replica}
            out.append(MetricSeries(one.name, labels, one.times + shift, one.values))
    return out


def _instance(name: object) -> Change:
    """node-exporter under another name: a function of the number of its node."""

    def labels(had: dict[str, str]) -> dict[str, str]:
        return {"instance": name(int(host(had).rpartition(".")[2]) - 10)}  # type: ignore[operator]

    return labelled(_EXPORTER, labels)


def _recorded_of_one_core(series: Series) -> list[MetricSeries]:
    """What rules that took the busiest core for the whole recorded of pods."""
    cores: dict[tuple[str, str], float] = {}
    times = series[0].times
    for one in series:
        if _OF_CONTAINERS(one) and one.name == _CPU:
            pod = one.labels["namespace"], one.labels["pod"]
            rate = (one.values[-1] - one.values[0]) / (one.times[-1] - one.times[0])
            cores[pod] = cores.get(pod, 0.0) + 0.28 * float(rate)
    return [
        MetricSeries(
            "forecast:pod_usage",
            {"namespace": namespace, "pod": pod, "resource": "cpu"},
            times,
            np.full(len(times), value),
        )
        for (namespace, pod), value in cores.items()
    ]


def _upper(labels: dict[str, str]) -> dict[str, str]:
    return {"instance": "NODE-" + str(int(host(labels)[-1])) + ".PROD.EXAMPLE.ORG:9100"}


def _families() -> dict[str, Bend]:
    """Each family deleted, and deleted on half of the nodes."""
    requests, capacity = where(_REQUESTS), "kube_node_status_capacity"
    return {
        "no cpu of containers": Bend(drop(where(_CPU)), "has no usage of containers"),
        "no memory of containers": Bend(drop(where(_MEMORY)), "has no usage of containers"),
        "no disk of containers": Bend(drop(where(_FS)), "pod_disk found nothing"),
        "no network of containers": Bend(drop(where(_NET)), "pod_network found nothing"),
        "no cAdvisor": Bend(drop(where(CADVISOR)), "has no usage of containers"),
        "no kube-state-metrics": Bend(drop(where(STATE)), "has no kube_pod_info"),
        "no kube_pod_info": Bend(drop(where("kube_pod_info")), "has no kube_pod_info"),
        "no kube_pod_status_phase": Bend(drop(where("kube_pod_status_phase")), "has no kube_pod_status_phase"),
        "no requests": Bend(drop(requests), "none of 20 pods has requests"),
        "no requests of sidecars": Bend(
            drop(where("kube_pod_init_container_resource_requests")), "requests of sidecars are not counted"
        ),
        "no owners of ReplicaSets": Bend(drop(where("kube_replicaset_owner"))),
        "no owners of Jobs": Bend(drop(where("kube_job_owner"))),
        "no kube_node_info": Bend(drop(where("kube_node_info"))),
        "no capacity": Bend(drop(where(capacity)), "node_capacity found nothing"),
        "no allocatable": Bend(drop(where("kube_node_status_allocatable")), "kube_node_status_allocatable lacks them"),
        "no cpu of nodes": Bend(drop(where("node_cpu_.*")), "node_cpu found nothing"),
        "no memory of nodes": Bend(drop(where("node_memory_.*"))),
        "no disk of nodes": Bend(drop(where("node_disk_.*")), "node_disk found nothing"),
        "no network of nodes": Bend(drop(where("node_network_(rec|trans).*")), "node_network found nothing"),
        "no speed of interfaces": Bend(drop(where("node_network_speed_bytes")), lacks=("capacity network",)),
        "no node-exporter": Bend(drop(_EXPORTER), lacks=("capacity network",)),
        "no node-exporter, no root cgroup": Bend(drop(_EXPORTER, _ROOT), "node_cpu found nothing"),
        "no log collector": Bend(drop(_LOGS), lacks=("log_bytes",)),
        "no cpu of containers on half": Bend(drop(on_half(_CPU, pod=".+")), "their cpu was never measured"),
        "no memory of containers on half": Bend(drop(on_half(_MEMORY, pod=".+")), "their memory was never measured"),
        "no disk of containers on half": Bend(drop(on_half(_FS, pod=".+")), "their disk was never measured"),
        "no network of containers on half": Bend(drop(on_half(_NET, pod=".+")), "their network was never measured"),
        "no cAdvisor on half": Bend(drop(on_half(CADVISOR)), "were never measured"),
        "no capacity on half": Bend(drop(on_half(capacity)), "capacity of 3 of 6 nodes"),
        "no allocatable on half": Bend(
            drop(on_half("kube_node_status_allocatable")), "kube_node_status_allocatable lacks them"
        ),
        "no node info on half": Bend(drop(on_half("kube_node_info"))),
        "no cpu of nodes on half": Bend(drop(on_half("node_cpu_.*")), "cpu of 3 of 6 nodes"),
        "no memory of nodes on half": Bend(drop(on_half("node_memory_.*"))),
        "no disk of nodes on half": Bend(drop(on_half("node_disk_.*")), "disk of 3 of 6 nodes"),
        "no network of nodes on half": Bend(drop(on_half("node_network_(rec|trans).*")), "network of 3 of 6 nodes"),
        "no node-exporter on half": Bend(drop(on_half(NODE_EXPORTER)), lacks=("capacity network",)),
        "no node-exporter, no root cgroup on half": Bend(drop(on_half(NODE_EXPORTER), _ROOT), "have no usage"),
        "no logs on half": Bend(drop(on_half("vector_.*")), "no log bytes of any pod on 3 of 6 nodes"),
    }


def _labels() -> dict[str, Bend]:
    """Each label that matters deleted or renamed."""
    no_owner = {"created_by_kind": "<none>", "created_by_name": "<none>"}
    uid = labelled(where(STATE), uid="")
    return {
        "no label container": Bend(labelled(where(CADVISOR), container=""), "pod_disk found nothing"),
        "no label image": Bend(labelled(where(CADVISOR), image="")),
        "no label image, pause is POD": Bend(
            then(labelled(_PAUSE, container="POD"), labelled(where(CADVISOR), image=""))
        ),
        "no label pod of containers": Bend(labelled(where(CADVISOR), pod=""), "pod_disk found nothing"),
        "no label namespace of containers": Bend(labelled(where(CADVISOR), namespace=""), "has no usage of containers"),
        "no label node of the kubelet": Bend(labelled(where(CADVISOR), node="")),
        "no label id": Bend(labelled(where(CADVISOR), id="")),
        "no label cpu": Bend(labelled(where(_CPU), cpu="")),
        "no label interface": Bend(labelled(where(_NET), interface="")),
        "no label device of containers": Bend(labelled(where(_FS), device=""), "disk"),
        "no label instance of node-exporter": Bend(labelled(_EXPORTER, instance=""), "label node"),
        "no label device of nodes": Bend(
            labelled(where("node_(disk|network)_.*"), device=""), "node_disk found nothing"
        ),
        "no label mode": Bend(labelled(where("node_cpu_.*"), mode=""), "node_cpu found nothing"),
        "no uid": Bend(uid),
        "no host_network": Bend(labelled(where("kube_pod_info"), host_network="")),
        "no host_network, no pod_ip": Bend(labelled(where("kube_pod_info"), host_network="", pod_ip="")),
        "no owner of pods": Bend(
            labelled(where("kube_pod_info"), created_by_kind="", created_by_name=""), "none of 20 pods has an owner"
        ),
        "<none> owners": Bend(labelled(where("kube_pod_info"), lambda had: no_owner), "none of 20 pods has an owner"),
        "<none> owner of static pods": Bend(
            labelled(where("kube_pod_info", created_by_kind="Node"), lambda had: no_owner)
        ),
        "no node of pods": Bend(labelled(where("kube_pod_info"), node=""), "found no running pod"),
        "no phase": Bend(labelled(where("kube_pod_status_phase"), phase=""), "found no running pod"),
        "phase in lower case": Bend(
            labelled(where("kube_pod_status_phase"), lambda had: {"phase": had["phase"].lower()}),
            "found no running pod",
        ),
        "no resource of requests": Bend(
            labelled(where(_REQUESTS), resource="", unit=""), "none of 20 pods has requests"
        ),
        "no resource of capacity": Bend(
            labelled(where("kube_node_status_.*"), resource="", unit=""), "node_capacity found nothing"
        ),
        "no internal_ip": Bend(labelled(where("kube_node_info"), internal_ip="")),
        "no node of capacity": Bend(labelled(where("kube_node_status_.*"), node=""), "label node"),
        "no restart_policy": Bend(labelled(where("kube_pod_init_.*_info"), restart_policy=""), "sidecars"),
        "pod_name and container_name": Bend(moved(where(CADVISOR), pod_name="pod", container_name="container")),
        "pod_name beside pod": Bend(
            labelled(_OF_PODS, lambda had: {"pod_name": had["pod"], "container_name": had.get("container", "")})
        ),
        "old labels on half": Bend(moved(on_half(CADVISOR), pod_name="pod", container_name="container")),
        "labels with other names": Bend(
            moved(where(CADVISOR), kubernetes_pod_name="pod", kubernetes_namespace="namespace"),
            "pod_disk found nothing",
        ),
        "io_kubernetes labels": Bend(
            moved(
                where(CADVISOR),
                container_label_io_kubernetes_pod_name="pod",
                container_label_io_kubernetes_pod_namespace="namespace",
            ),
            "pod_disk found nothing",
        ),
        "ids only": Bend(
            then(
                drop(_SLICES), labelled(where(CADVISOR), namespace="", pod="", container="", image="", name="", node="")
            ),
            "pod_disk found nothing",
        ),
        "ids only, cgroupfs": Bend(
            then(
                _cgroups_v1(), labelled(where(CADVISOR), namespace="", pod="", container="", image="", name="", node="")
            ),
            "pod_disk found nothing",
        ),
        "container ids in another case": Bend(
            labelled(where(CADVISOR), lambda had: {"name": had.get("name", "").upper()})
        ),
    }


def _units() -> dict[str, Bend]:
    """Figures in another unit, or of another kind."""
    of_nodes = where("node_cpu_seconds_total")
    return {
        "milli-cores of containers": Bend(scaled(where(_CPU, pod=".+"), 1e3), "must be in cores"),
        "milli-cores of nodes": Bend(scaled(of_nodes, 1e3), "must be in cores"),
        "thousandth cores of containers": Bend(scaled(where(_CPU, pod=".+"), 1e-3), "of what nodes use"),
        "thousandth cores of nodes": Bend(scaled(of_nodes, 1e-3), "pod_cpu adds up to"),
        "KiB of containers": Bend(scaled(where(_MEMORY, pod=".+"), 1 / 1024), "of what nodes use"),
        "MiB of containers": Bend(scaled(where(_MEMORY, pod=".+"), 2.0**-20), "must be in bytes"),
        "KiB of nodes": Bend(scaled(where("node_memory_.*"), 1 / 1024), "must be in bytes"),
        "capacity in KiB": Bend(
            scaled(where("kube_node_status_.*", resource="memory"), 1 / 1024), "times what the nodes have"
        ),
        "capacity in milli-cores": Bend(
            scaled(where("kube_node_status_.*", resource="cpu"), 1e3), "node_capacity returns 4,000 cores"
        ),
        "requests in milli-cores": Bend(scaled(where(_REQUESTS, resource="cpu"), 1e3), "requests for cpu add up to"),
        "requests in KiB": Bend(scaled(where(_REQUESTS, resource="memory"), 1 / 1024), "requests for memory are below"),
        "cpu of containers is a gauge": Bend(as_gauge(where(_CPU, pod=".+")), "with a gauge where a counter is meant"),
        "cpu of nodes is a gauge": Bend(as_gauge(of_nodes), "node_cpu says 0 of every node"),
        "network of containers is a gauge": Bend(
            as_gauge(where(_NET, pod=".+")), "with a gauge where a counter is meant"
        ),
        "memory of containers is a constant": Bend(
            valued(where(_MEMORY, pod=".+"), lambda v, t: 0 * v), "must be in bytes"
        ),
        "phase of all is 0": Bend(valued(where("kube_pod_status_phase"), lambda v, t: 0 * v), "found no running pod"),
        "values are not numbers": Bend(valued(where(_CPU, pod=".+"), lambda v, t: v * np.nan), "are NaN"),
    }


def _agents() -> dict[str, Bend]:
    """Other agents, versions, runtimes and systems."""
    cores = {f"cpu{core:02d}": share for core, share in enumerate((0.28, 0.26, 0.24, 0.22))}
    few_labels = ("namespace", "pod", "container", "node", "instance")
    nested = lambda had: {"id": had["id"] + "/nested"}  # noqa: E731
    old_exporter = {
        "node_cpu_seconds_total": "node_cpu",
        "node_memory_(.*)_bytes": r"node_memory_\1",
        "node_disk_(read|written)_bytes_total": r"node_disk_bytes_\1",
        "node_network_(receive|transmit)_bytes_total": r"node_network_\1_bytes",
    }
    return {
        "cpu by core": Bend(parts(where(_CPU), "cpu", cores)),
        "cpu by core beside the total": Bend(also(where(_CPU, pod=".+"), parts(where(_CPU), "cpu", cores))),
        "cpu by core on half": Bend(parts(on_half(_CPU), "cpu", cores)),
        "cpu by core, recorded by older rules": Bend(
            then(added(_recorded_of_one_core), parts(where(_CPU), "cpu", cores))
        ),
        "cgroups of pods only": Bend(drop(_OF_CONTAINERS), "pod_disk found nothing"),
        "cgroups of pods only on half": Bend(drop(on_half(CADVISOR, container=".+")), "their disk was never measured"),
        "containers without labels on half": Bend(
            labelled(on_half(CADVISOR, container=".+"), container="", pod="", namespace="", image="", name=""),
            "their disk was never measured",
        ),
        "one container of two has no name": Bend(
            drop(where(CADVISOR, container="db|api")), "their disk was never measured"
        ),
        "one container of two has the old labels": Bend(
            moved(where(CADVISOR, container="backup|mesh"), pod_name="pod", container_name="container"),
            "use more than their named containers",
        ),
        "the container that has the memory has no name": Bend(
            drop(where(_MEMORY, container="db")), "use more than their named containers"
        ),
        "no cgroups of pods": Bend(drop(_SLICES)),
        "pause container is POD": Bend(labelled(_PAUSE, container="POD")),
        "nested cgroups of containers": Bend(
            also(where(_USAGE, container=".+"), labelled(_OF_CONTAINERS, nested), scaled(where(".*"), 0.5))
        ),
        "cgroupfs": Bend(_cgroups_v1()),
        "/metrics/resource beside cAdvisor": Bend(_resource_endpoint()),
        "/metrics/resource only": Bend(
            then(_resource_endpoint(), drop(where(CADVISOR, metrics_path="/metrics/cadvisor"), _EXPORTER)),
            "pod_disk found nothing",
        ),
        "/metrics/resource sums of pods only": Bend(
            then(_resource_endpoint(), drop(where(CADVISOR))), "pod_disk found nothing"
        ),
        "stand-alone cAdvisor beside the kubelet": Bend(
            also(
                where(_USAGE, container=".+"),
                labelled(
                    _OF_CONTAINERS, namespace="monitoring", pod="cadvisor-x1y2z", container="cadvisor", job="cadvisor"
                ),
            )
        ),
        "kube-state-metrics 1.x": Bend(_old_state()),
        "node-exporter 0.15": Bend(renamed(old_exporter)),
        "kernel without MemAvailable": Bend(drop(where("node_memory_MemAvailable_bytes"))),
        "Windows on half": Bend(_windows(), lacks=("capacity network",)),
        "Windows without windows_exporter": Bend(
            then(
                labelled(on_half("kube_node_info"), os_image="Windows Server 2022"),
                drop(on_half(NODE_EXPORTER), on_half(CADVISOR)),
            ),
            "were never measured",
        ),
        "interfaces ens5": Bend(labelled(where("node_network_.*", device="eth0"), device="ens5")),
        "interfaces of ARM": Bend(labelled(where("node_network_.*", device="eth0"), device="end0")),
        "interfaces of POWER": Bend(labelled(where("node_network_.*", device="eth0"), device="env2")),
        "interfaces of Hyper-V": Bend(labelled(where("node_network_.*", device="eth0"), device="enP53091s1np0")),
        "interfaces with a made-up name": Bend(
            labelled(where("node_network_.*", device="eth0"), device="uplink"), "node_network"
        ),
        "bond with slaves": Bend(
            then(
                parts(where("node_network_.*", device="eth0"), "device", {"eno1": 0.5, "eno2": 0.5, "bond0": 1.0}),
                drop(where("node_network_speed_bytes", device="bond0")),
            )
        ),
        "bond alone": Bend(labelled(where("node_network_.*", device="eth0"), device="bond0"), "node_network"),
        "VLAN and bridge above": Bend(
            also(
                where("node_network_(rec|trans).*", device="eth0"),
                parts(where(".*"), "device", {"eth0.100": 1, "br0": 1}),
            )
        ),
        "LVM on NVMe": Bend(
            then(
                labelled(where("node_disk_.*", device="sda"), device="nvme0n1"),
                labelled(where("node_disk_.*", device="sda1"), device="nvme0n1p1"),
                also(where("node_disk_.*", device="dm-0"), labelled(where(".*"), device="md127")),
                labelled(where(_FS), device="/dev/nvme0n1"),
                also(where(_FS), labelled(where(".*"), device="/dev/dm-0")),
            )
        ),
        "disks with a made-up name": Bend(
            labelled(where("node_disk_.*", device="sda"), device="xyzdisk"), "node_disk found nothing"
        ),
        "disks of pods on dm-0 only": Bend(labelled(where(_FS), device="/dev/dm-0"), "pod_disk found nothing"),
        "disks of containers without device name": Bend(labelled(where(_FS), device="8:0"), "pod_disk found nothing"),
        "Multus network": Bend(parts(where(_NET, pod=".+", interface="eth0"), "interface", {"eth0": 0.6, "net1": 0.4})),
        "CPU of labels few": Bend(
            then(
                summed(where(_CPU, container=".+"), few_labels, "container_cpu_usage_seconds_total"),
                drop(where(_CPU, metrics_path=".+", pod=".+")),
            )
        ),
    }


def _scraping() -> dict[str, Bend]:
    """Names of targets, relabelling, what the server does with time."""

    def dishonest(match: Match, **target: str) -> Change:
        def labels(had: dict[str, str]) -> dict[str, str]:
            return {f"exported_{k}": had.get(k, "") for k in target} | target

        return labelled(match, labels)

    state = where(STATE)

    every = where(".*")
    in_pods = lambda had: {"instance": f"10.244.{host(had)[-1]}.7:9100"}  # noqa: E731
    node_pods = added(
        lambda series: [
            new
            for one in series
            if where("node_uname_info")(one)
            for new in (
                _named(
                    one,
                    "kube_pod_info",
                    job="kube-state-metrics",
                    namespace="monitoring",
                    pod=one.labels["pod"],
                    uid=one.labels["pod"],
                    node=one.labels["nodename"],
                    created_by_kind="DaemonSet",
                    created_by_name="node-exporter",
                    host_network="false",
                ),
            )
        ]
    )
    return {
        "full host names": Bend(_instance(lambda n: f"node-{n}.prod.example.org:9100")),
        "host names": Bend(_instance(lambda n: f"node-{n}:9100")),
        "host names without port": Bend(_instance(lambda n: f"node-{n}")),
        "full host names in upper case": Bend(labelled(_EXPORTER, _upper)),
        "Kubernetes knows full names": Bend(_instance(lambda n: f"node-{n}:9100"), domain=".prod.example.org"),
        "names with nothing in common": Bend(
            then(_instance(lambda n: f"host{n * 7}:9100"), drop(where("node_uname_info")), drop(_ROOT)), "does not know"
        ),
        "names with nothing in common, root cgroup": Bend(
            then(_instance(lambda n: f"host{n * 7}:9100"), drop(where("node_uname_info"))), lacks=("capacity network",)
        ),
        "names that only uname tells": Bend(_instance(lambda n: f"host{n * 7}:9100")),
        "label node beside the instance": Bend(
            labelled(
                _EXPORTER, lambda had: {"node": f"node-{host(had)[-1]}", "instance": f"172.16.0.{host(had)[-1]}:9100"}
            )
        ),
        "label nodename beside the instance": Bend(
            then(
                labelled(
                    _EXPORTER,
                    lambda had: {
                        "kubernetes_node": f"node-{host(had)[-1]}",
                        "instance": f"172.16.0.{host(had)[-1]}:9100",
                    },
                ),
                drop(where("node_uname_info"), _ROOT),
            ),
            "does not know",
        ),
        "node-exporter behind pod addresses": Bend(
            then(node_pods, labelled(_EXPORTER, in_pods), drop(where("node_uname_info")))
        ),
        "node-exporter behind pod addresses, unlabelled": Bend(
            then(labelled(_EXPORTER, in_pods, pod="", namespace=""), drop(where("node_uname_info"), _ROOT)),
            "does not know",
        ),
        "IPv6 addresses": Bend(
            then(
                labelled(_EXPORTER, lambda had: {"instance": f"[fd00::{host(had)[-1]}]:9100"}),
                labelled(where("kube_node_info"), lambda had: {"internal_ip": f"fd00::{had['internal_ip'][-1]}"}),
            )
        ),
        "machines outside": Bend(added(_foreign_machines)),
        "node-exporter twice": Bend(also(_EXPORTER, labelled(every, job="node-exporter-2"))),
        "node-exporter twice under two names": Bend(
            also(_EXPORTER, labelled(every, lambda had: {"instance": f"node-{host(had)[-1]}:9101", "job": "second"}))
        ),
        "honorLabels false": Bend(dishonest(state, namespace="monitoring", pod="ksm-0", node="node-2"), "honorLabels"),
        "honorLabels false for namespace": Bend(dishonest(state, namespace="monitoring"), "honorLabels"),
        "honorLabels false for pod": Bend(dishonest(state, pod="ksm-0"), "honorLabels"),
        "honorLabels false for node": Bend(dishonest(state, node="node-2"), "honorLabels"),
        "exported labels dropped, all pods on one node": Bend(
            labelled(where(STATE, node=".+"), node="node-2"), "honorLabels"
        ),
        "exported labels dropped, one namespace": Bend(
            labelled(where(STATE, namespace=".+"), namespace="monitoring"), "honorLabels"
        ),
        "honorLabels false for requests only": Bend(
            dishonest(where(_REQUESTS), namespace="monitoring", pod="ksm-0"), "honorLabels"
        ),
        "honorLabels false on the kubelet": Bend(
            dishonest(where(CADVISOR, pod=".+"), namespace="monitoring", pod="kubelet"), "honorLabels"
        ),
        "two replicas of Prometheus": Bend(lambda series: _replicas(series)),
        "two replicas of kube-state-metrics": Bend(also(state, labelled(every, instance="10.244.4.4:8080"))),
        "sharded kube-state-metrics": Bend(
            labelled(state, lambda had: {"shard": str(len(had.get("pod", had.get("node", ""))) % 2)})
        ),
        "two clusters": Bend(_second_cluster("cluster"), "cluster"),
        "two clusters, no label": Bend(_second_cluster(""), "cluster"),
        "counters restart": Bend(valued(where(".*_total"), _restarted)),
        "scrapes every four minutes": Bend(_slower(240), "two scrape intervals"),
        "scrapes every six minutes": Bend(_slower(360), "two scrape intervals"),
        "cAdvisor every six minutes": Bend(_slower(360, CADVISOR), "two scrape intervals"),
        "an hour without scrapes": Bend(kept(every, lambda t: (t < t[15]) | (t > t[-15]))),
        "an address changes hands": Bend(_address_changes),
        "kube-state-metrics since an hour": Bend(kept(state, _second)),
        "containers restart under another id": Bend(_new_containers),
    }


def _logs() -> dict[str, Bend]:
    """Each collector, and two side by side."""
    return {
        "promtail": Bend(then(_collector("promtail_read_bytes_total"), drop(_LOGS))),
        "alloy": Bend(then(_collector("loki_source_file_read_bytes_total"), drop(_LOGS))),
        "gauge of the kubelet": Bend(then(added(_kubelet_log_gauge), drop(_LOGS))),
        "vector and promtail": Bend(_collector("promtail_read_bytes_total")),
        "vector for one namespace, promtail for all": Bend(
            then(
                _collector("promtail_read_bytes_total"),
                drop(where("vector_.*", pod_namespace="data|kube-system|batch")),
            )
        ),
        "promtail that reads no pods, gauge of the kubelet": Bend(
            then(
                added(_kubelet_log_gauge),
                drop(_LOGS),
                added(lambda s: [_named(s[0], "promtail_read_bytes_total", job="promtail", path="/var/log/syslog")]),
            )
        ),
        "fluent-bit of metrics, gauge of the kubelet": Bend(
            then(
                added(_kubelet_log_gauge),
                drop(_LOGS),
                added(
                    lambda s: [
                        _named(
                            s[0],
                            "fluentbit_input_bytes_total",
                            name="cpu.0",
                            pod=s[0].labels["pod"],
                            namespace=s[0].labels["namespace"],
                        )
                    ]
                ),
            )
        ),
    }


BENDS: Mapping[str, Bend] = _families() | _labels() | _units() | _agents() | _scraping() | _logs()

HEALTHY: frozenset[str] = frozenset(
    (
        *("/metrics/resource beside cAdvisor", "two replicas of Prometheus", "two replicas of kube-state-metrics"),
        *("sharded kube-state-metrics", "full host names", "Kubernetes knows full names", "IPv6 addresses"),
        *("label node beside the instance", "pause container is POD", "cgroupfs", "no cgroups of pods", "LVM on NVMe"),
        *(
            "bond with slaves",
            "interfaces ens5",
            "counters restart",
            "node-exporter twice",
            "Multus network",
            "promtail",
        ),
        *("no log collector", "no speed of interfaces", "an hour without scrapes", "gauge of the kubelet"),
    )
)
"""Bends that are as good as the healthy scrape: there must be no finding."""
