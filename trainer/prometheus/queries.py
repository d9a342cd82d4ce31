"""The questions put to Prometheus, as data: the defaults fit kube-prometheus, each can be replaced in the settings.

A query is a template. Placeholders are replaced as text, since PromQL itself is full of braces:

    {window}      the step as a duration, such as 300s
    {namespaces}  a regular expression of namespaces; a pod query without it is never split by namespace
    {day}         duration of what is read of a day; for facts of which the last one of the day counts

What a query must return:

    pod_*           an instant vector with the labels namespace and pod, one series per pod, in base units
    node_*          an instant vector with the label node, one series per node, in base units
    pod_info        namespace, pod, uid, node, created_by_kind, created_by_name, host_network of *running* pods
    pod_requests    namespace, pod, resource (cpu in cores, memory in bytes), optionally uid
    *_owner         namespace, replicaset or job_name, owner_kind, owner_name
    node_capacity, node_allocatable    node, resource (cpu in cores, memory in bytes)
    node_info       node, internal_ip

Each default takes the maximum over everything that may exist twice (two Prometheus replicas, two replicas of an
exporter, an old and a new container under one name) before it adds up what exists once.
"""

from __future__ import annotations

from dataclasses import dataclass

EVERY_NAMESPACE = ".+"

# Whole devices only: what is written to a partition, to device-mapper (LVM, LUKS) or to md is counted again on the
# disk below. PromQL anchors regular expressions.
PHYSICAL_DISKS = "(/dev/)?(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+|rbd[0-9]+|dasd[a-z]+)"
# No VLAN (eth0.100), bond, bridge, veth or overlay: their bytes pass a physical interface as well.
PHYSICAL_INTERFACES = "eth[0-9]+|en[a-z0-9]+|em[0-9]+|p[0-9]+p[0-9]+|ib[0-9]+"
_NOT_POD_INTERFACES = "lo|veth.*|cni.*|cali.*|tunl.*|docker.*|flannel.*|cbr.*|dummy.*|kube-ipvs.*|nodelocaldns"

# cAdvisor labels the cgroup of the whole pod with container="" and the pause container with container="POD"
# (or not at all): their usage is that of the containers once more.
_CONTAINERS = 'container!="",container!="POD",pod!="",namespace=~"{namespaces}"'
_PODS = 'pod!="",namespace=~"{namespaces}"'


def on_node(vector: str) -> str:
    """Give every series of a node-exporter vector the label node: its own if it has one, else instance without port."""
    return (
        f'label_replace(label_join({vector}, "node_or_instance", ";", "node", "instance"), '
        r'"node", "$1$2", "node_or_instance", "([^;]+);.*|;\\[?(.*?)\\]?(?::[0-9]+)?")'
    )


def both_ways(one: str, other: str, label: str) -> str:
    """Return the union of two vectors, distinguished by a label: `a + b` would drop what only one of them has."""
    return (
        f'label_replace({one}, "direction", "in", "{label}", ".*") '
        f'or label_replace({other}, "direction", "out", "{label}", ".*")'
    )


def _pod_disk() -> str:
    selector = f'{_CONTAINERS},device=~"{PHYSICAL_DISKS}"'
    union = both_ways(
        f"rate(container_fs_reads_bytes_total{{{selector}}}[{{window}}])",
        f"rate(container_fs_writes_bytes_total{{{selector}}}[{{window}}])",
        "pod",
    )
    return f"sum by (namespace, pod) (max by (namespace, pod, container, device, direction) ({union}))"


def _pod_network() -> str:
    selector = f'{_PODS},interface!~"{_NOT_POD_INTERFACES}"'
    union = both_ways(
        f"rate(container_network_receive_bytes_total{{{selector}}}[{{window}}])",
        f"rate(container_network_transmit_bytes_total{{{selector}}}[{{window}}])",
        "pod",
    )
    return f"sum by (namespace, pod) (max by (namespace, pod, interface, direction) ({union}))"


def _node_bytes(one: str, other: str, devices: str) -> str:
    union = both_ways(
        f'rate({one}{{device=~"{devices}"}}[{{window}}])', f'rate({other}{{device=~"{devices}"}}[{{window}}])', "device"
    )
    return f"sum by (node) (max by (node, device, direction) ({on_node(f'({union})')}))"


_POD_CPU = (
    "sum by (namespace, pod) (max by (namespace, pod, container) "
    f"(rate(container_cpu_usage_seconds_total{{{_CONTAINERS}}}[{{window}}])))"
)
_POD_MEMORY = (
    "sum by (namespace, pod) (max by (namespace, pod, container) "
    f"(avg_over_time(container_memory_working_set_bytes{{{_CONTAINERS}}}[{{window}}])))"
)
_POD_INFO = (
    "group by (namespace, pod, uid, node, created_by_kind, created_by_name, host_network) "
    '(kube_pod_info{node!="",namespace=~"{namespaces}"}) and on (namespace, pod) '
    '(max by (namespace, pod) (kube_pod_status_phase{phase="Running",namespace=~"{namespaces}"}) == 1)'
)
_POD_REQUESTS = (
    "sum by (namespace, pod, uid, resource) (max by (namespace, pod, uid, container, resource) (last_over_time("
    'kube_pod_container_resource_requests{resource=~"cpu|memory",namespace=~"{namespaces}"}[{day}])))'
)
# An object without an owner has owner_is_controller="<none>" or "": that it has none is worth knowing.
_REPLICASET_OWNER = (
    "group by (namespace, replicaset, owner_kind, owner_name) (last_over_time("
    'kube_replicaset_owner{owner_is_controller!="false",namespace=~"{namespaces}"}[{day}]))'
)
_JOB_OWNER = (
    "group by (namespace, job_name, owner_kind, owner_name) (last_over_time("
    'kube_job_owner{owner_is_controller!="false",namespace=~"{namespaces}"}[{day}]))'
)
_NODE_CPU = "sum by (node) (max by (node, cpu, mode) ({}))".replace(
    "{}", on_node('rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[{window}])')
)
_NODE_MEMORY = "max by (node) ({})".replace(
    "{}",
    on_node(
        "(avg_over_time(node_memory_MemTotal_bytes[{window}])"
        " - avg_over_time(node_memory_MemAvailable_bytes[{window}]))"
    ),
)
_NODE_NETWORK_SPEED = "sum by (node) (max by (node, device) ({}))".replace(
    "{}", on_node(f'(last_over_time(node_network_speed_bytes{{device=~"{PHYSICAL_INTERFACES}"}}[{{day}}]) > 0)')
)


@dataclass(frozen=True, slots=True)
class Queries:
    """PromQL templates by the name they have in the settings: prometheus.queries.<name>.

    pod_log, node_log : empty = the queries of the log source (trainer.prometheus.log_source)
    """

    pod_cpu: str = _POD_CPU
    pod_memory: str = _POD_MEMORY
    pod_disk: str = _pod_disk()
    pod_network: str = _pod_network()
    pod_log: str = ""
    pod_info: str = _POD_INFO
    pod_requests: str = _POD_REQUESTS
    replicaset_owner: str = _REPLICASET_OWNER
    job_owner: str = _JOB_OWNER
    node_cpu: str = _NODE_CPU
    node_memory: str = _NODE_MEMORY
    node_disk: str = _node_bytes("node_disk_read_bytes_total", "node_disk_written_bytes_total", PHYSICAL_DISKS)
    node_network: str = _node_bytes(
        "node_network_receive_bytes_total", "node_network_transmit_bytes_total", PHYSICAL_INTERFACES
    )
    node_log: str = ""
    node_info: str = "group by (node, internal_ip) (last_over_time(kube_node_info[{day}]))"
    node_capacity: str = (
        'max by (node, resource) (last_over_time(kube_node_status_capacity{resource=~"cpu|memory"}[{day}]))'
    )
    node_allocatable: str = (
        'max by (node, resource) (last_over_time(kube_node_status_allocatable{resource=~"cpu|memory"}[{day}]))'
    )
    node_network_speed: str = _NODE_NETWORK_SPEED


def fill(template: str, *, window_seconds: int, namespaces: str = EVERY_NAMESPACE, day_seconds: int = 86_400) -> str:
    """A query from its template."""
    return (
        template.replace("{window}", f"{window_seconds}s")
        .replace("{day}", f"{day_seconds}s")
        .replace("{namespaces}", namespaces)
    )
