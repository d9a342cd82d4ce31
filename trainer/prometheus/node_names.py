"""Which node of Kubernetes a name or an address means that metrics use, and when. Pure.

kube-state-metrics, the kubelet and Kubernetes know a node by its name; node-exporter by whatever its target is called:
an internal address, a host name, a full host name, or the address of its own pod. Facts have a time: an address may
belong to one node until noon and to another from then on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from base.host_names import without_domain
from trainer.prometheus.labels import node_names
from trainer.prometheus.matrix import Matrix

# As in ip-10-0-0-11.ec2.internal.
_ADDRESS_IN_NAME = re.compile(r"(?:^|[a-z]-)(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})(?:\.|$)")
_EVER = 2**31


@dataclass(frozen=True, slots=True)
class Span:
    """A name means this node from tick `first` to tick `last`, both included."""

    node: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NodeNames:
    """known: the nodes of Kubernetes, empty if no one lists them. of: what other names mean, spans in order of time."""

    known: frozenset[str]
    of: Mapping[str, tuple[Span, ...]]

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
    nodes: Iterable[str], addresses: Mapping[str, Sequence[Span]], told: Mapping[str, str], seen: Iterable[str]
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
    of: dict[str, tuple[Span, ...]] = {}
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


def always(node: str) -> tuple[Span, ...]:
    """The span of a name that means one node all day."""
    return (Span(node, -_EVER, _EVER),)


def _without_port(name: str) -> str:
    """A label node may be the whole address of a target: https://10.0.0.11:10250."""
    host, colon, port = name.rpartition("://")[2].rpartition(":")
    return host if colon and port.isdecimal() and ":" not in host else name


def _address_in(node: str) -> str:
    found = _ADDRESS_IN_NAME.search(node)
    return ".".join(found.groups()) if found else ""
