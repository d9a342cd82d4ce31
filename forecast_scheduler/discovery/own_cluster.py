"""By which label a store that holds several clusters marks this one: what its kube_node_info says of our nodes. Pure.

All series of our nodes have one value of a label that says cluster, and those of other clusters have others. Labels
such as region or env may divide the nodes of today in the same way, and another cluster's tomorrow: they are shown to
the user, who may choose them, and never taken.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from base.errors import InputError
from forecast_scheduler.discovery.known_nodes import Labels, by_owner
from forecast_scheduler.discovery.services import ClusterNodes
from trainer.prometheus.clusters import dividing_labels, says_cluster

_GONE_SHARE: Final = 0.1
"""Of our nodes: as many more with our value, or with our names on other machines, are nodes that left or were rebuilt
in the minutes for which a store still shows them. A cluster of a tenth of our size looks the same."""

_SHOWN: Final = 5


def holds_several(series: Sequence[Labels]) -> bool:
    """Whether kube_node_info has nodes of more than one cluster, as a label says that says cluster."""
    names = [name for name in dividing_labels(series) if says_cluster(name)]
    return any(len({labels.get(name, "") for labels in series}) > 1 for name in names)


def own_cluster(nodes: ClusterNodes, series: Sequence[Labels]) -> dict[str, str]:
    """Return the label and value to select (prometheus.cluster); {} = nothing needs to be selected.

    series : kube_node_info with all its labels
    Raises InputError, with the values found, if nodes of another cluster have our names and no label parts them.
    """
    ours, others = by_owner(nodes, series)
    our_names = {node for node, _ in ours}
    few = max(1.0, _GONE_SHARE * len(our_names))
    names = dividing_labels(labels for _, labels in (*ours, *others))
    seen: list[str] = []
    for name in names:
        values = {labels.get(name, "") for _, labels in ours}
        beside = {node for node, labels in others if labels.get(name, "") in values}
        elsewhere = {labels.get(name, "") for _, labels in others} - values
        if len(values) == 1 and elsewhere and len(beside) <= few and says_cluster(name):
            return {name: min(values)}
        if elsewhere or len(values) > 1:
            seen.append(f"{name} has {_listed(values | elsewhere)}")
    if len({node for node, _ in others} & our_names) <= few:
        return {}  # other machines, and nodes that left: those of ours are read by their names
    found = f": {'; '.join(seen)}" if seen else ""
    raise InputError(
        "it also holds another cluster with nodes of the same names, and no label says for sure which is which"
        f"{found}; choose this one with prometheus.cluster: {{LABEL: VALUE}}"
    )


def _listed(values: Collection[str]) -> str:
    known = sorted(value or "none" for value in values)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(known[:_SHOWN]) + more
