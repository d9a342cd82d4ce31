"""What runs and is not measured, and what is not known of nodes: in full or for one resource. Pure.

What no pod or node has at all is said before a day is read (PrometheusSource.check); here it is what some lack while
others have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from forecast.resources import CPU, LOG, MEMORY, NETWORK, RESOURCES
from trainer.prometheus.day_tables import Presence
from trainer.prometheus.node_facts import NodeFacts
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.remark import Remark, some

_FEW_PODS = 0.005
"""Share of the running pods that may be unmeasured without a word: those that have just begun, or are about to end."""
_SOME_PODS = 0.02
"""Share that may lack one resource: of a pod that cannot start there is a cgroup and nothing else."""
_LEAST_TICKS = 3
_MOST_OF_THE_TIME, _LASTING_TICKS = 0.8, 12
_QUIET_PODS = 3
"""So many pods of a node of which none logs anything have no collector."""


def unmeasured_pods(pods: PodsOfDay, rows: Presence, usage: Floats32, facts: NodeFacts) -> list[Remark]:
    """Pods that ran and were not measured, or not in one resource, by where they ran and what their nodes run on.

    usage : (n_pods, n_ticks, n_resources)
    """
    if not len(pods.pods):
        return []
    ticks = np.bincount(rows.pod, minlength=len(pods.pods))
    ran: Bools = ticks >= _LEAST_TICKS
    last = pods.last_life()
    on_host = np.array([pods.lives[life].host_network for life in last], dtype=bool)
    known: Bools = np.asarray(np.isfinite(usage).any(axis=1))  # (n_pods, n_resources)
    unknown = ran & ~known[:, [CPU, MEMORY]].any(axis=1)
    remarks = []
    if _many(unknown, ran):
        remarks.append(
            Remark(
                "unmeasured pods",
                f"{_these(unknown, ran, 'were', pods, last, facts)}: neither their containers nor their own cgroups "
                "have series, look at what the kubelets there expose (/metrics/cadvisor, /metrics/resource) and what "
                "the scrape drops. They are forecast from their nodes and their requests",
            )
        )
    for resource in range(LOG):
        here = ran & ~unknown & (~on_host if resource == NETWORK else True)
        lacking = here & ~known[:, resource]
        if known[here, resource].any() and lacking.sum() > max(1, _SOME_PODS * here.sum()):
            remarks.append(
                Remark(
                    f"pods without {RESOURCES[resource].name}",
                    f"{_these(lacking, here, f'{RESOURCES[resource].name} was', pods, last, facts)}: look at what the "
                    "kubelets there expose (/metrics/cadvisor) and what the scrape drops",
                )
            )
    lasting = ticks >= min(_LASTING_TICKS, usage.shape[1])  # at its beginning every pod has a hole
    asked = (known & lasting[:, None])[rows.pod][:, [CPU, MEMORY]]  # (n_rows, 2)
    there = np.isfinite(usage[rows.pod, rows.tick][:, [CPU, MEMORY]])
    for column, name in enumerate(("cpu", "memory")):
        if asked[:, column].any() and (share := there[asked[:, column], column].mean()) < _MOST_OF_THE_TIME:
            remarks.append(
                Remark(
                    f"gaps of pods: {name}",
                    f"{name} of running pods is measured in {share:.0%} of the time only: is the kubelet's cAdvisor "
                    "scraped without gaps, and is prometheus.step at least two scrape intervals?",
                )
            )
    return remarks + _without_collector(pods, last, ran, known[:, LOG], facts)


def unknown_of_nodes(
    nodes: Sequence[str], node_usage: Floats32, capacity: Floats, allocatable: Floats, with_pods: Collection[str]
) -> Iterator[Remark]:
    """Nodes that are measured, though not in every resource that others have, and nodes of unknown size.

    node_usage : (n_nodes, n_ticks, n_resources). capacity : (n_nodes, n_resources). allocatable : (n_nodes, 2)
    """
    here = np.array([node in with_pods for node in nodes], dtype=bool)
    if not here.any():
        return
    known: Bools = np.asarray(np.isfinite(node_usage).any(axis=1))
    measured = here & known[:, [CPU, MEMORY]].any(axis=1)
    for resource in range(LOG):
        lacking = measured & ~known[:, resource]
        if lacking.any() and (measured & known[:, resource]).any():
            name = RESOURCES[resource].name
            yield Remark(
                f"nodes without {name}",
                f"{name} of {_nodes(lacking, measured, nodes)} is not measured: look at what node-exporter exposes "
                f"there, and at prometheus.queries.node_{name}",
            )
    sized: Bools = np.asarray(np.isfinite(capacity[:, [CPU, MEMORY]]).all(axis=1))
    if (here & sized).any() and (here & ~sized).any():
        yield Remark(
            "nodes without capacity",
            f"the capacity of {_nodes(here & ~sized, here, nodes)} is unknown: kube_node_status_capacity lacks them, "
            "look at what kube-state-metrics exposes and what its scrape drops",
        )
    unsaid = here & sized & ~np.isfinite(allocatable).all(axis=1)
    if unsaid.any():
        yield Remark(
            "nodes without allocatable",
            f"what pods may request of {_nodes(unsaid, here, nodes)} is unknown, since kube_node_status_allocatable "
            "lacks them: their whole capacity is taken for it",
        )


def _without_collector(pods: PodsOfDay, last: Ints, ran: Bools, logs: Bools, facts: NodeFacts) -> list[Remark]:
    """Nodes of whose pods none logs anything, while pods of other nodes do."""
    nodes = [pods.lives[life].node for life in last]
    heard = {nodes[pod] for pod in np.flatnonzero(ran & logs).tolist()}
    quiet = Counter(nodes[pod] for pod in np.flatnonzero(ran & ~logs).tolist() if nodes[pod] not in heard)
    silent = sorted(node for node, n_pods in quiet.items() if n_pods >= _QUIET_PODS)
    if not heard or not silent:
        return []
    return [
        Remark(
            "nodes without logs",
            f"no log bytes of any pod on {len(silent):,} of {len(heard | set(quiet)):,} nodes are counted, while those "
            f"of others are: run the log collector on {some(silent)}, or scrape it there",
        )
    ]


def _many(lacking: Bools, of: Bools) -> bool:
    return bool(lacking.any() and lacking.sum() > _FEW_PODS * of.sum())


def _these(lacking: Bools, of: Bools, what: str, pods: PodsOfDay, last: Ints, facts: NodeFacts) -> str:
    """Say how many pods, where, on what platform, and of which services most of them are."""
    lives = [pods.lives[last[pod]] for pod in np.flatnonzero(lacking).tolist()]
    nodes = Counter(life.node for life in lives)
    services = Counter(f"{life.namespace}/{life.service.service}" for life in lives)
    subject = "running pods were" if what == "were" else f"running pods: their {what}"
    return (
        f"{lacking.sum():,} of {of.sum():,} {subject} never measured, on {some(nodes)}{facts.platform(nodes)}; most of "
        f"them of {some(services)}"
    )


def _nodes(these: Bools, of: Bools, nodes: Sequence[str]) -> str:
    names = [node for node, here in zip(nodes, these.tolist(), strict=True) if here]
    return f"{len(names):,} of {of.sum():,} nodes ({some(names)})"
