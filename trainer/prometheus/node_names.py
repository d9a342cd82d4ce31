"""Which pod or node a series is about: its labels, the names and addresses of nodes, and what Kubernetes says of them.
Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from base.arrays import Floats
from base.errors import InputError
from base.host_names import without_domain
from forecast.resources import CPU, MEMORY, NETWORK, RESOURCES
from trainer.prometheus.matrix import Matrix

# As in ip-10-0-0-11.ec2.internal.
_ADDRESS_IN_NAME = re.compile(r"(?:^|[a-z]-)(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})(?:\.|$)")
_EVER = 2**31
_RESOURCES = {"cpu": CPU, "memory": MEMORY}


def pod_names(name: str, labels: Sequence[Mapping[str, str]], *, once: bool = True) -> list[tuple[str, str]]:
    """(namespace, pod) of each series of a pod query; raises InputError if a label is missing.

    once : also if a pod comes twice
    """
    pods = [(series.get("namespace", ""), series.get("pod", "")) for series in labels]
    for pod, series in zip(pods, labels, strict=True):
        if not all(pod):
            raise InputError(
                f"query {name} returns a series without the label {'pod' if pod[0] else 'namespace'} (labels found: "
                f"{_shown(series)}): add 'by (namespace, pod)' or label_replace to prometheus.queries.{name}"
            )
    if once:
        _once(name, [f"pod {namespace}/{pod}" for namespace, pod in pods], "sum by (namespace, pod)")
    return pods


def node_names(name: str, labels: Sequence[Mapping[str, str]], *, once: bool = True) -> list[str]:
    """Node of each series of a node query; raises InputError if the label is missing.

    once : also if a node comes twice
    """
    nodes = [series.get("node", "") for series in labels]
    for node, series in zip(nodes, labels, strict=True):
        if not node:
            raise InputError(
                f"query {name} returns a series without the label node (labels found: {_shown(series)}): add "
                f"'by (node)' or label_replace to prometheus.queries.{name}"
            )
    if once:
        _once(name, [f"node {node}" for node in nodes], "sum by (node)")
    return nodes


def nodes_named(parts: Iterable[Matrix]) -> set[str]:
    """Every name that the answers to node queries have for a node."""
    return {node for part in parts for node in node_names("node", part.labels, once=False)}


def _once(name: str, things: list[str], way_out: str) -> None:
    if len(set(things)) < len(things):
        double = next(thing for thing in things if things.count(thing) > 1)
        raise InputError(
            f"query {name} returns {things.count(double)} series for {double}: aggregate them with '{way_out}' in "
            f"prometheus.queries.{name}"
        )


def _shown(labels: Mapping[str, str]) -> str:
    return ", ".join(sorted(labels)) or "none"


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A name means this node from tick `first` to tick `last`, both included."""

    node: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NodeNames:
    """known: the nodes of Kubernetes, empty if no one lists them. of: what other names mean, spans in order of time."""

    known: frozenset[str]
    of: Mapping[str, tuple[NameSpan, ...]]

    def node(self, name: str) -> str:
        """The node that a name meant last; the name itself where nothing is known of it."""
        return self.of[name][-1].node if name in self.of else name

    def nodes(self, name: str) -> frozenset[str]:
        """Every node that a name meant on this day, for facts without a time; the name itself if nothing is known."""
        return frozenset(span.node for span in self.of[name]) if name in self.of else frozenset({name})

    def strangers(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names that mean none of the nodes that Kubernetes lists, sorted."""
        return tuple(sorted({name for name in names if self.node(name) not in self.known})) if self.known else ()

    def renamed(self, query: str, parts: Sequence[Matrix], *, once: bool = True) -> list[Matrix]:
        """The answers to a node query with the names of nodes; strangers are left out.

        Raises InputError if a series has no label node, or, with `once`, if one name comes twice.
        """
        return [self._renamed(part, node_names(query, part.labels, once=once)) for part in parts]

    def _renamed(self, part: Matrix, names: Sequence[str]) -> Matrix:
        nodes: list[Mapping[str, str]] = []
        first, last, series_of = [], [], []
        for series, name in enumerate(names):
            whole = always(name) if name in self.known or not self.known else ()
            for span in self.of.get(name, whole):
                nodes.append({**part.labels[series], "node": span.node})
                first.append(span.first)
                last.append(span.last)
                series_of.append(series)
        if len(nodes) == len(names) == len(set(series_of)) and all(tick == -_EVER for tick in first):
            return replace(part, labels=tuple(nodes))  # nothing to cut: every name means one node all day
        order = np.argsort(part.series, kind="stable")
        counts = np.bincount(part.series, minlength=len(names))
        starts = np.concatenate([[0], np.cumsum(counts)])
        rows, numbers = [], []
        for new, (series, begin, end) in enumerate(zip(series_of, first, last, strict=True)):
            here = order[starts[series] : starts[series + 1]]
            here = here[(part.tick[here] >= begin) & (part.tick[here] <= end)]
            rows.append(here)
            numbers.append(np.full(len(here), new))
        if not rows:
            return Matrix((), *(np.empty(0, dtype=np.int64),) * 2, np.empty(0))
        at = np.concatenate(rows)
        return Matrix(tuple(nodes), np.concatenate(numbers), part.tick[at], part.values[at])


def names_of_nodes(
    nodes: Iterable[str], addresses: Mapping[str, Sequence[NameSpan]], told: Mapping[str, str], seen: Iterable[str]
) -> NodeNames:
    """What the names mean that metrics use.

    nodes     : as Kubernetes lists them
    addresses : internal addresses, and when they belonged to which node
    told      : what other names were found to mean, such as the address of node-exporter's pod
    seen      : the names that metrics use
    Returns a mapping of those names only. One that is neither an address nor told is compared without its domain, where
    that leaves one node and one name; then regardless of case.
    """
    known = frozenset(nodes)
    of: dict[str, tuple[NameSpan, ...]] = {}
    open_names = [name for name in seen if name not in known]
    bare = {name: _without_port(name) for name in open_names}
    address_of = {_address_in(node): node for node in known if _address_in(node)}
    by_label = without_domain(set(bare.values()) - known, known)
    for name in open_names:
        plain = bare[name]
        if plain in addresses:
            of[name] = tuple(addresses[plain])
        elif told.get(name) in known:
            of[name] = always(told[name])
        elif node := (plain if plain in known else address_of.get(plain) or by_label.get(plain)):
            of[name] = always(node)
    return NodeNames(known, of)


def always(node: str) -> tuple[NameSpan, ...]:
    """The span of a name that means one node all day."""
    return (NameSpan(node, -_EVER, _EVER),)


def _without_port(name: str) -> str:
    """A label node may be the whole address of a target: https://10.0.0.11:10250."""
    host, colon, port = name.rpartition("://")[2].rpartition(":")
    return host if colon and port.isdecimal() and ":" not in host else name


def _address_in(node: str) -> str:
    found = _ADDRESS_IN_NAME.search(node)
    return ".".join(found.groups()) if found else ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of nodes by name; capacities in base units.

    nodes_of  : the nodes that had an internal address, by address
    runs_on   : container runtime and operating system of each node, as far as they are told
    """

    names: frozenset[str]
    nodes_of: Mapping[str, tuple[str, ...]]
    capacities: Mapping[tuple[str, int], float]
    allocatables: Mapping[tuple[str, int], float]
    runs_on: Mapping[str, str] = field(default_factory=dict)

    def platform(self, nodes: Iterable[str]) -> str:
        """What most of these nodes run on, in brackets; "" where that is not told."""
        most = Counter(self.runs_on.get(node, "") for node in nodes).most_common(1)
        return f" ({most[0][0]})" if most and most[0][0] else ""

    def capacity(self, nodes: Sequence[str], speed: Sequence[Matrix], names: NodeNames) -> Floats:
        """(n_nodes, n_resources), NaN = unknown. speed: answers to node_network_speed."""
        values = np.full((len(nodes), len(RESOURCES)), np.nan)
        row = {node: number for number, node in enumerate(nodes)}
        for (node, resource), value in self.capacities.items():
            if (name := names.node(node)) in row:
                values[row[name], resource] = value
        for part in speed:
            told = zip(node_names("node_network_speed", part.labels, once=False), part.values.tolist(), strict=True)
            for told_name, value in told:
                for name in names.nodes(told_name) & row.keys():
                    values[row[name], NETWORK] = np.fmax(values[row[name], NETWORK], value)
        return values

    def allocatable(self, nodes: Sequence[str], names: NodeNames) -> Floats:
        """(n_nodes, 2) CPU and memory, NaN = unknown."""
        values = np.full((len(nodes), 2), np.nan)
        row = {node: number for number, node in enumerate(nodes)}
        for (node, resource), value in self.allocatables.items():
            if (name := names.node(node)) in row:
                values[row[name], (CPU, MEMORY).index(resource)] = value
        return values


def node_facts(info: Sequence[Matrix], capacity: Sequence[Matrix], allocatable: Sequence[Matrix]) -> NodeFacts:
    """From the answers to node_info, node_capacity and node_allocatable."""
    nodes: dict[str, str] = {}
    addresses: dict[str, list[str]] = defaultdict(list)
    for part in info:
        for labels in part.labels:
            if node := labels.get("node"):
                what = labels.get("container_runtime_version", ""), labels.get("os_image", "")
                nodes[node] = ", ".join(filter(None, what))
                if (address := labels.get("internal_ip", "")) and node not in addresses[address]:
                    addresses[address].append(node)
    capacities, allocatables = _by_resource("node_capacity", capacity), _by_resource("node_allocatable", allocatable)
    named = {node for node, _ in (*capacities, *allocatables) if node not in addresses}
    nodes_of = {address: tuple(owners) for address, owners in addresses.items() if address not in nodes}
    return NodeFacts(frozenset(nodes | dict.fromkeys(named, "")), nodes_of, capacities, allocatables, nodes)


def _by_resource(name: str, parts: Sequence[Matrix]) -> dict[tuple[str, int], float]:
    return {
        (node, _RESOURCES[labels["resource"]]): value
        for part in parts
        for node, labels, value in zip(
            node_names(name, part.labels, once=False), part.labels, part.values.tolist(), strict=True
        )
        if labels.get("resource") in _RESOURCES
    }
