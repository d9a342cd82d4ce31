"""Does the server hold several clusters? Then the union of two worlds would be read, so the run ends with a sentence.

What tells clusters apart are facts that one cluster has once: a node's address and machine, the moment at which the
namespace kube-system was created, the uid and node of a pod. Two replicas of Prometheus or of an exporter say the same
of them; two clusters contradict each other, or list nodes of which none is in both. A label of the target that goes
with such a difference chooses a cluster (prometheus.cluster). kube-state-metrics in shards lists disjoint nodes, too,
but what differs between shards is the target's own: pod, instance, shard.

`several_clusters` decides, from label sets alone; `check_clusters` and `check_choice` ask.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from itertools import combinations
from typing import Final

from base.errors import InputError
from trainer.prometheus.http_answer import TooManySamples
from trainer.prometheus.label_selectors import label_name
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.prometheus_connection import PrometheusConnection

Labels = Mapping[str, str]

_LASTING: Final = timedelta(minutes=30)
"""What contradicts itself has to do so for that long: a node that is rebuilt has two addresses for some minutes."""

NODES: Final = 'kube_node_info{node!="",exported_node=""}'  # with exported_node, node is where the exporter runs
_NAMESPACE: Final = 'kube_namespace_created{namespace="kube-system",exported_namespace=""}'
_PLACED: Final = 'group by (namespace, pod, uid, node) (kube_pod_info{node!="",exported_pod=""}%s)'
_LASTING_SECONDS: Final = round(_LASTING.total_seconds())
_TWICE: Final = (
    f"topk(5, count by (namespace, pod) ({_PLACED % ''} and {_PLACED % f' offset {_LASTING_SECONDS}s'}) > 1)"
)
_OWN: Final = (
    "namespace, pod, uid, node, instance, host_ip, pod_ip, created_by_kind, created_by_name, priority_class, "
    "host_network, container, id, image, name"
)
_OF_TARGETS: Final = tuple(
    f"count without ({_OWN}) ({metric})"
    for metric in ("kube_pod_info", 'container_memory_working_set_bytes{container!=""}')
)
"""Label sets of targets, without what differs from pod to pod and from node to node.

Not those of node-exporter: it runs on machines outside, too, and a cluster of databases has no pods.
"""

_FACTS: Final = ("internal_ip", "system_uuid", "provider_id")
_OF_NODE_INFO: Final = frozenset(
    (
        *("__name__", "node", "kernel_version", "os_image", "container_runtime_version", "kubelet_version"),
        *("kubeproxy_version", "pod_cidr", "boot_id", "machine_id", "internal_dns", *_FACTS),
    )
)
_SAYS_CLUSTER: Final = re.compile(r"(?i)(?!label_|annotation_|container_|exported_).*cluster([_.]?(name|id|uid|uuid))?")
_ORDINARY: Final = re.compile(
    # Words of labels that differ between targets of one cluster, and all labels of a Service or a chart.
    r"(?i)(.*[_.])?(pod|instance|host|hostname|ip|index|hash|shard|ordinal|node|nodename|uid|container|endpoint|service|job|"
    r"address|port|path|scheme|namespace|revision|zone|rack)([_.].*)?|name|app|component|version|release|chart|heritage|"
    r"exported_.+|app_kubernetes_io_.+|helm_sh_chart"
)
_REPLICA: Final = re.compile(r"(?i).*replica.*|prometheus|monitor|collector|agent")
"""Who scraped. Two of them may share the targets of one cluster, so they choose a cluster only if they contradict."""

_FEW: Final = 2
"""Contradictions that are no accident: of a stuck exporter, for instance."""

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class SeenClusters:
    """What a server was asked, as label sets.

    nodes      : kube_node_info
    earlier    : the same half an hour before
    namespaces : kube_namespace_created of kube-system, and when that was (unix seconds as text) under "created"
    twice      : namespace and pod of some of those with several uids or nodes, then and now
    targets    : those that scrapes leave on series of pods
    """

    nodes: Sequence[Labels]
    earlier: Sequence[Labels] = ()
    namespaces: Sequence[Labels] = ()
    twice: Sequence[Labels] = ()
    targets: Sequence[Labels] = ()


@dataclass(slots=True)
class _Side:
    """What one value of a label comes with: facts of each node, and when kube-system was created."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)

    def add(self, labels: Labels) -> None:
        if "created" in labels:
            self.created.add(labels["created"])
        else:
            facts = self.nodes.setdefault(labels["node"], {})
            facts |= {name: labels[name].casefold() for name in _FACTS if labels.get(name)}

    def contradicts(self, other: _Side) -> bool:
        if self.created and other.created and self.created != other.created:
            return True
        for node in self.nodes.keys() & other.nodes.keys():
            mine, theirs = self.nodes[node], other.nodes[node]
            if any(mine[name] != theirs[name] for name in mine.keys() & theirs.keys()):
                return True
        return False

    def is_apart_from(self, other: _Side) -> bool:
        return bool(self.nodes and other.nodes) and self.nodes.keys().isdisjoint(other.nodes)

    def has_the_machines_of(self, other: _Side) -> bool:
        """Whether it is the same cluster for sure: addresses and names may be the same in two of them."""
        shared = self.nodes.keys() & other.nodes.keys()
        same = (
            self.nodes[node].get("system_uuid", "") == other.nodes[node].get("system_uuid", "") != "" for node in shared
        )
        return bool(shared) and all(same)


def several_clusters(seen: SeenClusters, chosen: Mapping[str, str]) -> str | None:
    """Return a sentence that says what several clusters are known by and what to set; None = it is one.

    chosen : prometheus.cluster as it is
    """
    nodes = _lasting(seen.nodes, seen.earlier)
    return _by_label(nodes, seen, chosen) or _without_label(nodes, seen)


def dividing_labels(nodes: Iterable[Labels]) -> list[str]:
    """The labels of kube_node_info by whose values clusters may be told apart, those that say cluster first."""
    names = {name for labels in nodes for name in labels} - _OF_NODE_INFO
    fitting = [name for name in names if says_cluster(name) or not (_is_ordinary(name) or _REPLICA.fullmatch(name))]
    return sorted(fitting, key=lambda name: (not says_cluster(name), name))


def says_cluster(name: str) -> bool:
    """Whether the name of a label says that its values are clusters."""
    return _SAYS_CLUSTER.fullmatch(name) is not None


def _by_label(nodes: Sequence[Labels], seen: SeenClusters, chosen: Mapping[str, str]) -> str | None:
    about = [*nodes, *seen.namespaces]
    names = {name for labels in about for name in labels} - _OF_NODE_INFO - {"created", "namespace", *chosen}
    if seen.targets:  # what nodes alone have is a fact of theirs that we do not know
        names &= {name for labels in seen.targets for name in labels}
    # The label that says cluster first: region or tenant may differ as well.
    for name in sorted(names, key=lambda name: (not says_cluster(name), name)):
        values = _sides(name, about)
        if len(values) > 1 and _are_clusters(name, values):
            return _choose(name, values, chosen)
    judged = {name for name in names if len(_sides(name, nodes)) > 1}
    for name in sorted({name for labels in seen.targets for name in labels} - judged - set(chosen)):
        found = {labels[name] for labels in seen.targets if labels.get(name)}
        if len(found) > 1 and says_cluster(name):
            return _choose(name, found, chosen)
    return None


def _are_clusters(name: str, sides: Mapping[str, _Side]) -> bool:
    """Whether the values of a label are clusters; a value "" are the series without the label."""
    pairs = list(combinations(sides, 2))
    contradict = any(sides[one].contradicts(sides[other]) for one, other in pairs)
    if says_cluster(name):
        named = [(one, other) for one, other in pairs if one and other]
        unlike = any(not sides[one].has_the_machines_of(sides[other]) for one, other in named)
        return contradict or unlike or any(sides[one].is_apart_from(sides[other]) for one, other in pairs)
    if _is_ordinary(name):
        return False
    if _REPLICA.fullmatch(name):
        return contradict
    return contradict or any(sides[one].is_apart_from(sides[other]) for one, other in pairs)


def _without_label(nodes: Sequence[Labels], seen: SeenClusters) -> str | None:
    created = sorted({labels["created"] for labels in seen.namespaces})
    if len(created) > 1:
        return _untold(f"the namespace kube-system was created at {created[0]} and at {created[1]} (unix time)")
    for fact, words in (("internal_ip", "addresses"), ("system_uuid", "machines")):
        of_node, node_of = defaultdict(set), defaultdict(set)
        for labels in nodes:
            if value := labels.get(fact, "").casefold():
                of_node[labels["node"]].add(value)
                node_of[value].add(labels["node"])
        twice = sorted(node for node, values in of_node.items() if len(values) > 1)
        # One address under several names: the label node is not what it should be, and that is another fault.
        if len(twice) >= _FEW and all(len(node_of[value]) == 1 for node in twice for value in of_node[node]):
            one, other = sorted(of_node[twice[0]])[:2]
            return _untold(
                f"{len(twice):,} of {len(of_node):,} nodes have two {words} at the same time, for instance {twice[0]} "
                f"has {one} and {other}"
            )
    if len(seen.twice) >= _FEW:
        names = sorted(f"{labels.get('namespace', '')}/{labels.get('pod', '')}" for labels in seen.twice)
        some = ", ".join(names[:3])
        twice_there = f"pods are there twice at the same time, with two uids or on two nodes, for instance {some}"
        return f"{_untold(twice_there)}. If it is one cluster, an instance of kube-state-metrics is stuck: restart it"
    return None


def _untold(found: str) -> str:
    return (
        f"two clusters answer behind this server, and no label tells them apart: {found}; give the series of each "
        "cluster a label of their own (external_labels of its Prometheus or agent), and choose by it with "
        "prometheus.cluster"
    )


def _choose(name: str, values: Iterable[str], chosen: Mapping[str, str]) -> str:
    known = sorted(values, key=lambda value: (not value, value))
    shown = _list([value or "none" for value in known])
    way_out = ", ".join(f"{_yaml(label)}: {_yaml(value)}" for label, value in (*chosen.items(), (name, known[0])))
    return (
        f"the server holds {len(known)} values of the label {name}: {shown}; choose one with prometheus.cluster: "
        f"{{{way_out}}}"
    )


@cache  # asked for each label of each node
def _is_ordinary(name: str) -> bool:
    return _ORDINARY.fullmatch(name) is not None


def _sides(name: str, about: Sequence[Labels]) -> dict[str, _Side]:
    sides: dict[str, _Side] = defaultdict(_Side)
    for labels in about:
        sides[labels.get(name, "")].add(labels)
    return sides


def _lasting(nodes: Sequence[Labels], earlier: Sequence[Labels]) -> Sequence[Labels]:
    """The nodes that were there earlier, with the same facts and under the same labels; all if none was."""

    def key(labels: Labels) -> frozenset[tuple[str, str]]:
        return frozenset(
            (name, value)
            for name, value in labels.items()
            if name in ("node", *_FACTS) or not (name in _OF_NODE_INFO or _is_ordinary(name))
        )

    before = {key(labels) for labels in earlier}
    return [labels for labels in nodes if key(labels) in before] or nodes


def _list(values: Sequence[str]) -> str:
    more = f" and {len(values) - _SHOWN:,} more" if len(values) > _SHOWN else ""
    return ", ".join(values[:_SHOWN]) + more


def _yaml(text: str) -> str:
    """As a key or value inside of braces."""
    return text if re.fullmatch(r"[A-Za-z_][\w./-]*", text) else json.dumps(text, ensure_ascii=False)


def check_clusters(connection: PrometheusConnection, at: datetime) -> None:
    """Raise InputError if what `connection` selects is more than one cluster. at: when there are series of pods."""

    def ask(query: str, when: datetime = at) -> Matrix | None:
        try:
            return connection.instant("clusters", query, when)
        except TooManySamples:
            return None  # so large an answer cannot be judged; the others can

    def labels_of(query: str, when: datetime = at) -> Sequence[Labels]:
        answer = ask(query, when)
        return answer.labels if answer is not None else ()

    created = ask(_NAMESPACE)
    namespaces = (
        [
            {**labels, "created": f"{value:.0f}"}
            for labels, value in zip(created.labels, created.values.tolist(), strict=True)
        ]
        if created is not None
        else []
    )
    seen = SeenClusters(
        nodes=labels_of(NODES),
        earlier=labels_of(NODES, at - _LASTING),
        namespaces=namespaces,
        twice=labels_of(_TWICE),
        targets=[labels for query in _OF_TARGETS for labels in labels_of(query)],
    )
    if fault := several_clusters(seen, connection.options.cluster):
        raise InputError(fault)


def kube_system_created(connection: PrometheusConnection, at: datetime) -> int | None:
    """When the namespace kube-system was created, by which a cluster is known, in unix seconds; None = not said."""
    try:
        values = {round(value) for value in connection.instant("clusters", _NAMESPACE, at).values.tolist()}
    except TooManySamples:
        return None
    return values.pop() if len(values) == 1 else None


def check_choice(connection: PrometheusConnection, at: datetime) -> None:
    """Raise InputError if prometheus.cluster chooses what the server does not have, with what it has.

    To be asked where nothing was found: that need not be its fault.
    """
    chosen = connection.options.cluster
    if not chosen:
        return
    names = ", ".join(map(label_name, chosen))
    # Of the last hour: what ended some minutes ago is still a cluster to choose.
    query = f'group by ({names}) (last_over_time({{__name__=~"kube_pod_info|forecast:pod_info"}}[1h]))'
    found = [{name: labels.get(name, "") for name in chosen} for labels in _everywhere(connection, query, at)]
    if dict(chosen) in found or not found:
        return
    missing = [name for name in chosen if not any(labels[name] for labels in found)]
    if missing:
        raise InputError(
            f"no series of kube_pod_info has the label {missing[0]} that prometheus.cluster asks for: correct its "
            "name, or give it to the series (external_labels of the Prometheus or agent)"
        )
    values = sorted(" and ".join(f"{name}={labels[name] or 'none'}" for name in chosen) for labels in found)
    asked = " and ".join(f"{name}={value}" for name, value in chosen.items())
    raise InputError(
        f"no series of kube_pod_info has {asked}, as prometheus.cluster asks for: the server has {_list(values)}; "
        "choose one of them"
    )


def _everywhere(connection: PrometheusConnection, query: str, at: datetime) -> Sequence[Labels]:
    try:
        return connection.instant("clusters", query, at, everywhere=True).labels
    except TooManySamples:
        return ()
