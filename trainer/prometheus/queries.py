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

from trainer.prometheus.node_usage_shapes import NODE_EXPORTER, NODE_SHAPES
from trainer.prometheus.pod_usage_shapes import NAMED_CONTAINERS, POD_SHAPES
from trainer.prometheus.shape import PHYSICAL_INTERFACES, on_node, union

EVERY_NAMESPACE = ".+"

_POD_INFO = (
    "group by (namespace, pod, uid, node, created_by_kind, created_by_name, host_network) "
    '(kube_pod_info{node!="",namespace=~"{namespaces}"}) and on (namespace, pod) '
    '(max by (namespace, pod) (kube_pod_status_phase{phase="Running",namespace=~"{namespaces}"}) == 1)'
)


def _of_day(metric: str, labels: str, selector: str = "", over_time: str = "last") -> str:
    return f"max by ({labels}) ({over_time}_over_time({metric}{{{selector}}}[{{day}}]))"


def _by_resource(metric: str, labels: str, selector: str = "", over_time: str = "last") -> str:
    """A family with the label resource, or those that kube-state-metrics before 2.0 had, one for each resource."""
    told = ",".join(filter(None, ('resource=~"cpu|memory"', selector)))
    vectors = [_of_day(metric, f"{labels}, resource", told, over_time)]
    for resource, unit in (("cpu", "cores"), ("memory", "bytes")):
        vector = _of_day(f"{metric}_{resource}_{unit}", labels, selector, over_time)
        vectors.append(f'label_replace({vector}, "resource", "{resource}", "", "")')
    return " or ".join(vectors)


# What the scheduler counts: the containers and the sidecars, which are init containers that stay (KEP-753). Ordinary
# init containers end before the others begin.
_OF_CONTAINER, _ASKED = "namespace, pod, uid, container", 'namespace=~"{namespaces}"'
_SIDECARS = (
    f"({_by_resource('kube_pod_init_container_resource_requests', _OF_CONTAINER, _ASKED)})"
    " and on (namespace, pod, container) "
    + _of_day("kube_pod_init_container_info", "namespace, pod, container", f'restart_policy="Always",{_ASKED}')
)
_POD_REQUESTS = (
    "sum by (namespace, pod, uid, resource) ("
    f"{_by_resource('kube_pod_container_resource_requests', _OF_CONTAINER, _ASKED)} or ({_SIDECARS}))"
)
UNTOLD_SIDECARS = (
    'count(group by (namespace, pod, container) (container_memory_working_set_bytes{container!=""}) and on (namespace, '
    'pod, container) ((kube_pod_init_container_info{restart_policy=""} unless on () '
    'kube_pod_init_container_info{restart_policy!=""}) or (kube_pod_init_container_info{restart_policy="Always"} '
    'unless on () {__name__=~"kube_pod_init_container_resource_requests.*"})))'
)
"""How many init containers run beside the others, where kube-state-metrics is too old to tell which ones stay, or does
not tell what they request."""

# An object without an owner has owner_is_controller="<none>" or "": that it has none is worth knowing.
_REPLICASET_OWNER = (
    "group by (namespace, replicaset, owner_kind, owner_name) (last_over_time("
    'kube_replicaset_owner{owner_is_controller!="false",namespace=~"{namespaces}"}[{day}]))'
)
_JOB_OWNER = (
    "group by (namespace, job_name, owner_kind, owner_name) (last_over_time("
    'kube_job_owner{owner_is_controller!="false",namespace=~"{namespaces}"}[{day}]))'
)
_NODE_NETWORK_SPEED = "sum by (node) (max by (node, device) ({}))".replace(
    "{}", on_node(f'(last_over_time(node_network_speed_bytes{{device=~"{PHYSICAL_INTERFACES}"}}[{{day}}]) > 0)')
)


@dataclass(frozen=True, slots=True)
class Queries:
    """PromQL templates by the name they have in the settings: prometheus.queries.<name>.

    pod_log, node_log : empty = the queries of the log source (trainer.prometheus.log_source)
    """

    pod_cpu: str = NAMED_CONTAINERS.reads["pod_cpu"]
    pod_memory: str = NAMED_CONTAINERS.reads["pod_memory"]
    pod_disk: str = NAMED_CONTAINERS.reads["pod_disk"]
    pod_network: str = NAMED_CONTAINERS.reads["pod_network"]
    pod_log: str = ""
    pod_info: str = _POD_INFO
    pod_requests: str = _POD_REQUESTS
    replicaset_owner: str = _REPLICASET_OWNER
    job_owner: str = _JOB_OWNER
    node_cpu: str = NODE_EXPORTER.reads["node_cpu"]
    node_memory: str = NODE_EXPORTER.reads["node_memory"]
    node_disk: str = NODE_EXPORTER.reads["node_disk"]
    node_network: str = NODE_EXPORTER.reads["node_network"]
    node_log: str = ""
    node_info: str = "group by (node, internal_ip) (last_over_time(kube_node_info[{day}]))"
    node_capacity: str = _by_resource("kube_node_status_capacity", "node", over_time="max")
    node_allocatable: str = _by_resource("kube_node_status_allocatable", "node")
    node_network_speed: str = _NODE_NETWORK_SPEED


def is_default(queries: Queries, name: str) -> bool:
    """Whether the settings leave a query as it is."""
    return bool(getattr(queries, name) == getattr(_DEFAULT, name))


def in_every_shape(queries: Queries, name: str) -> str:
    """The template of a usage query for who cannot look first which shapes there are; that of the settings, if any.

    See trainer.prometheus.shape.union.
    """
    shapes = POD_SHAPES if name.startswith("pod_") else NODE_SHAPES
    return union(shapes, name) if is_default(queries, name) and name in shapes[0].reads else getattr(queries, name)


_DEFAULT = Queries()


def fill(template: str, *, window_seconds: int, namespaces: str = EVERY_NAMESPACE, day_seconds: int = 86_400) -> str:
    """A query from its template."""
    return (
        template.replace("{window}", f"{window_seconds}s")
        .replace("{day}", f"{day_seconds}s")
        .replace("{namespaces}", namespaces)
    )
