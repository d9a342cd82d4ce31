"""Shapes in which the usage of pods is exposed, and pods on the host network where kube-state-metrics does not say."""

from __future__ import annotations

from typing import Final

from trainer.prometheus.shape import (
    CONTAINERS,
    NOT_POD_INTERFACES,
    ONE_CORE,
    PHYSICAL_DISKS,
    PODS,
    WHOLE_CPU,
    Shape,
    both_ways,
)

_CPU, _MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
_SLICE = 'container="",image="",' + PODS
_SLICE_CPU = f"max by (namespace, pod) (rate({_CPU}{{{_SLICE},{WHOLE_CPU}}}[{{window}}]))"
_SLICE_MEMORY = f"max by (namespace, pod) (avg_over_time({_MEMORY}{{{_SLICE}}}[{{window}}]))"
_OLD = 'pod="",pod_name!="",namespace=~"{namespaces}"'
_OLD_CONTAINERS = f'container_name!="",container_name!="POD",{_OLD}'
_UID = "([0-9a-f]{8})[-_]([0-9a-f]{4})[-_]([0-9a-f]{4})[-_]([0-9a-f]{4})[-_]([0-9a-f]{12})"
_BY_UID = r"/.*pod" + _UID + r"(?:\\.slice)?/[^/]+"

# Not docker0, veth and bridges: a pod that runs containers of its own has these, too.
_ONLY_HOSTS_HAVE: Final = (
    "cni[0-9]+|cali.*|flannel.*|cbr0|kube-ipvs0|kube-bridge|nodelocaldns|eni[0-9a-f]+|gke[0-9a-f]+|azv[0-9a-f]+|"
    "lxc[0-9a-f]+|cilium_.*|vxlan.calico|ovn-k8s.*|genev_sys.*|antrea.*"
)

_POD = 'host_network="",namespace=~"{namespaces}"'


def _both(counter: str, selector: str, devices: str) -> str:
    """Reads and writes, or received and sent: one series for each device and direction."""
    one, other = (f"rate({counter.format(way)}{{{selector}{devices}}}[{{window}}])" for way in _ways(counter))
    return both_ways(one, other, "pod")


def _ways(counter: str) -> tuple[str, str]:
    return ("receive", "transmit") if "network" in counter else ("reads", "writes")


def _disk(selector: str, container: str) -> str:
    union = _both("container_fs_{}_bytes_total", selector, f',device=~"{PHYSICAL_DISKS}"')
    return f"max by (namespace, pod, {container}, device, direction) ({union})"


def _network(selector: str) -> str:
    union = _both("container_network_{}_bytes_total", selector, f',interface!~"{NOT_POD_INTERFACES}"')
    return f"max by (namespace, pod, interface, direction) ({union})"


def _sum(vector: str) -> str:
    return f"sum by (namespace, pod) ({vector})"


def _renamed(vector: str) -> str:
    """Return pod_name as pod."""
    return f'label_replace({vector}, "pod", "$1", "pod_name", "(.+)")'


def _old(template: str) -> str:
    """Return a template with the aggregation by pod_name instead of pod."""
    return _sum(_renamed(template.replace("(namespace, pod,", "(namespace, pod_name,")))


def _by_id(vector: str) -> str:
    """Series that have nothing but the path of their cgroup, named by the uid of the pod in it."""
    uid = f'label_replace({vector}, "uid", "$1-$2-$3-$4-$5", "id", "{_BY_UID}")'
    known = 'group by (namespace, pod, uid) (kube_pod_info{uid!="",namespace=~"{namespaces}"})'
    return _sum(f"sum by (uid) (max by (uid, id) ({uid})) * on (uid) group_left (namespace, pod) {known}")


NAMED_CONTAINERS: Final = Shape(
    name="named containers",
    says="{n} are measured by their containers",
    there=f"group by (namespace, pod) ({_CPU}{{{CONTAINERS},{WHOLE_CPU}}})",
    reads={
        "pod_cpu": _sum(f"max by (namespace, pod, container) (rate({_CPU}{{{CONTAINERS},{WHOLE_CPU}}}[{{window}}]))"),
        "pod_memory": _sum(
            f"max by (namespace, pod, container) (avg_over_time({_MEMORY}{{{CONTAINERS}}}[{{window}}]))"
        ),
        "pod_disk": _sum(_disk(CONTAINERS, "container")),
        "pod_network": _sum(_network(PODS)),
    },
)
"""That of kube-prometheus on containerd, CRI-O and Docker, and of the kubelet's /metrics/resource."""

SERIES_PER_CORE: Final = Shape(
    name="CPU by core",
    says="{n} have one series of CPU per core (a cAdvisor that stands alone does that): the cores are added up",
    there=f"group by (namespace, pod) ({_CPU}{{{CONTAINERS},{ONE_CORE}}})",
    larger=True,
    reads={
        "pod_cpu": _sum(
            f"max by (namespace, pod, container, cpu) (rate({_CPU}{{{CONTAINERS},{ONE_CORE}}}[{{window}}]))"
        )
    },
)

OLD_LABEL_NAMES: Final = Shape(
    name="labels pod_name and container_name",
    says="{n} are labelled pod_name and container_name, as kubelets before 1.16 do",
    there=f"group by (namespace, pod) ({_renamed(f'{_CPU}{{{_OLD_CONTAINERS}}}')})",
    reads={
        "pod_cpu": _old(
            "max by (namespace, pod, container_name, cpu) "
            f"(rate({_CPU}{{{_OLD_CONTAINERS},{WHOLE_CPU}}}[{{window}}]) or "
            f"rate({_CPU}{{{_OLD_CONTAINERS},{ONE_CORE}}}[{{window}}]) unless on (namespace, pod_name) "
            f"{_CPU}{{{_OLD_CONTAINERS},{WHOLE_CPU}}})"
        ),
        "pod_memory": _old(
            f"max by (namespace, pod, container_name) (avg_over_time({_MEMORY}{{{_OLD_CONTAINERS}}}[{{window}}]))"
        ),
        "pod_disk": _old(_disk(_OLD_CONTAINERS, "container_name")),
        "pod_network": _old(_network(_OLD)),
    },
)

POD_CGROUPS: Final = Shape(
    name="cgroups of pods",
    says=(
        "{n} have no named containers (cri-dockerd, Kata and some releases of RKE2 leave their labels out): the cgroup "
        "of the whole pod is read"
    ),
    there=f'group by (namespace, pod) ({{__name__=~"{_CPU}|{_MEMORY}",{_SLICE}}})',
    reads={
        "pod_cpu": (
            f"{_SLICE_CPU} or "
            f"sum by (namespace, pod) (max by (namespace, pod, cpu) (rate({_CPU}{{{_SLICE},{ONE_CORE}}}[{{window}}])))"
        ),
        "pod_memory": _SLICE_MEMORY,
    },
)

PARTLY_NAMED: Final = Shape(
    name="pods of which some containers are named",
    says="{n} use more than their named containers together: the cgroup of the whole pod is read where it is larger",
    # A fifth more, and 0.02 cores or 50 MB: the pause container, a restart within the window, and files that an init
    # container wrote, which stay with the pod's cgroup, are less.
    there=(
        f"(({_SLICE_CPU}) > 1.2 * ({NAMED_CONTAINERS.reads['pod_cpu']}) + 0.02) or "
        f"(({_SLICE_MEMORY}) > 1.2 * ({NAMED_CONTAINERS.reads['pod_memory']}) + 5e7)"
    ),
    reads={query: POD_CGROUPS.reads[query] for query in ("pod_cpu", "pod_memory")},
    beyond=True,
)

KUBELET_SUMS: Final = Shape(
    name="sums of the kubelet",
    says="{n} are measured as a whole by the kubelet (/metrics/resource), their containers are not",
    there=f"group by (namespace, pod) (pod_cpu_usage_seconds_total{{{PODS}}})",
    reads={
        "pod_cpu": f"max by (namespace, pod) (rate(pod_cpu_usage_seconds_total{{{PODS}}}[{{window}}]))",
        "pod_memory": f"max by (namespace, pod) (avg_over_time(pod_memory_working_set_bytes{{{PODS}}}[{{window}}]))",
    },
)

CGROUP_IDS: Final = Shape(
    name="paths of cgroups",
    says="{n} have series without the labels namespace and pod: they are found by the uid in the path of their cgroup",
    there=_by_id(f'{_CPU}{{pod="",pod_name="",container="",id=~"{_BY_UID}",{WHOLE_CPU}}}'),
    reads={
        "pod_cpu": _by_id(f'rate({_CPU}{{pod="",pod_name="",id=~"{_BY_UID}",{WHOLE_CPU}}}[{{window}}])'),
        "pod_memory": _by_id(f'avg_over_time({_MEMORY}{{pod="",pod_name="",id=~"{_BY_UID}"}}[{{window}}])'),
    },
)

POD_SHAPES: Final = (
    NAMED_CONTAINERS,
    SERIES_PER_CORE,
    OLD_LABEL_NAMES,
    POD_CGROUPS,
    PARTLY_NAMED,
    KUBELET_SUMS,
    CGROUP_IDS,
)


def _address(label: str) -> str:
    pods = f'last_over_time(kube_pod_info{{{_POD},{label}!=""}}[{{day}}])'
    return f'label_replace({pods}, "address", "$1", "{label}", "(.+)")'


ON_HOST_NETWORK: Final = (
    f"group by (namespace, pod) ({_address('pod_ip')} and on (namespace, pod, address) {_address('host_ip')}) or "
    "group by (namespace, pod) (last_over_time(container_network_receive_bytes_total"
    f'{{pod!="",namespace=~"{{namespaces}}",interface=~"{_ONLY_HOSTS_HAVE}"}}[{{day}}]))'
)
"""Vector by (namespace, pod)."""
