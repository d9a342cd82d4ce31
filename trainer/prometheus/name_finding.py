"""Asks a server what the names mean that metrics have for nodes: only for those that are not clear by themselves."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from base.host_names import is_address
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import NameSpan, NodeFacts, NodeNames, always, names_of_nodes
from trainer.prometheus.reader import DayReader, Question
from trainer.prometheus.shape import on_node

_AT_ONCE = 200  # addresses in one query


def find_names(reader: DayReader, facts: NodeFacts, nodes: Collection[str], seen: Iterable[str]) -> NodeNames:
    """What the names mean that metrics use on this day.

    nodes : as Kubernetes lists them
    seen  : the names that metrics use
    """
    addresses = {address: always(owners[0]) for address, owners in facts.nodes_of.items() if len(owners) == 1}
    shared = [address for address, owners in facts.nodes_of.items() if len(owners) > 1]
    addresses |= _spans(reader, shared)
    names = names_of_nodes(nodes, addresses, {}, seen)
    if not (strange := names.strangers(seen)):
        return names
    told = _told_by_exporters(reader) | _told_by_addresses(reader, [name for name in strange if is_address(name)])
    # A host name that the machine gives itself may be the node's name without its domain, or the other way round.
    itself = names_of_nodes(nodes, addresses, {}, set(told.values()))
    return names_of_nodes(nodes, addresses, {name: itself.node(meant) for name, meant in told.items()}, seen)


def _spans(reader: DayReader, addresses: Sequence[str]) -> dict[str, tuple[NameSpan, ...]]:
    """When each address belonged to which node, for those that belonged to several on this day."""
    found: dict[str, list[NameSpan]] = defaultdict(list)
    for pattern in _patterns(addresses):
        template = f'group by (node, internal_ip) (kube_node_info{{internal_ip=~"{pattern}"}})'
        [parts] = reader.ask([Question("node_info", template, 0, reader.grid.n_ticks - 1, 0)], lambda done, total: None)
        for labels, ticks in _ticks(parts):
            found[labels["internal_ip"]].append(NameSpan(labels["node"], int(ticks.min()), int(ticks.max())))
    return {address: tuple(sorted(spans, key=lambda span: span.first)) for address, spans in found.items()}


def _ticks(parts: Sequence[Matrix]) -> Iterable[tuple[dict[str, str], np.ndarray]]:
    for part in parts:
        for number, labels in enumerate(part.labels):
            if len(ticks := part.tick[part.series == number]) and labels.get("node") and labels.get("internal_ip"):
                yield dict(labels), ticks


def _told_by_exporters(reader: DayReader) -> dict[str, str]:
    """What exporters say of themselves: the machine's own name, and the pod they run in."""
    machine = on_node(
        "last_over_time(node_uname_info[{day}]) or "
        'label_replace(last_over_time(windows_cs_hostname[{day}]), "nodename", "$1", "hostname", "(.+)")'
    )
    in_pods = on_node('last_over_time(node_memory_MemTotal_bytes{pod!=""}[{day}])')
    alias = f'label_replace({in_pods}, "alias", "$1", "node", "(.*)")'
    pods = 'topk by (namespace, pod) (1, group by (namespace, pod, node) (kube_pod_info{node!=""}))'
    told = {}
    for template, name, meant in (
        (f"group by (node, nodename) ({machine})", "node", "nodename"),
        (f"group by (alias, node) ({alias} * on (namespace, pod) group_left (node) {pods})", "alias", "node"),
    ):
        for part in reader.facts("names of nodes", template):
            told.update(
                {labels[name]: labels[meant] for labels in part.labels if labels.get(name) and labels.get(meant)}
            )
    return told


def _told_by_addresses(reader: DayReader, addresses: Sequence[str]) -> dict[str, str]:
    """Whose addresses these are, as pods on the host network and pods with these addresses tell."""
    told = {}
    for pattern in _patterns(addresses):
        for label in ("pod_ip", "host_ip"):
            template = (
                f'group by ({label}, node) (last_over_time(kube_pod_info{{{label}=~"{pattern}",node!=""}}[{{day}}]))'
            )
            for part in reader.facts("names of nodes", template):
                told.update({labels[label]: labels["node"] for labels in part.labels if labels.get("node")})
    return told


def _patterns(names: Sequence[str]) -> list[str]:
    """Regular expressions of some names each, escaped for a PromQL string."""
    escaped = [re.escape(name).replace("\\", "\\\\") for name in names]
    return ["|".join(escaped[i : i + _AT_ONCE]) for i in range(0, len(escaped), _AT_ONCE)]
