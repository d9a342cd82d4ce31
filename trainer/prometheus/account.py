"""Whether what was read of a day balances: what runs is measured, and names that agents use meet. Pure.

A remark is made once for each cause, not once for each node. What cannot be right at all is refused with one sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from forecast.arrays import Bools, Floats32
from forecast.errors import InputError
from forecast.resources import CPU, MEMORY
from trainer.prometheus.day_tables import Presence
from trainer.prometheus.node_facts import NodeFacts
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.remark import Remark
from trainer.prometheus.shape_reading import Recognised

_FEW_PODS = 0.005
"""Share of the running pods that may be unmeasured without a word: those that have just begun, or are about to end."""
_LEAST_TICKS = 3
_MANY_NODES, _MANY_PODS = 3, 10
_NAMED = 3


def remarks_of_shapes(recognised: Sequence[Recognised]) -> list[Remark]:
    """How usage was read that does not come as kube-prometheus exposes it."""
    return [Remark(f"shape: {one.shape.name}", str(one), wrong=False) for one in recognised]


def check_places(pods: PodsOfDay, seen: Collection[str]) -> None:
    """Raise InputError if kube-state-metrics puts all pods on one node of several.

    seen : the names that metrics of nodes have for them
    """
    nodes = {life.node for life in pods.lives}
    if len(nodes) == 1 and len(seen) >= _MANY_NODES and len(pods.pods) >= _MANY_PODS:
        raise InputError(
            f"kube_pod_info puts all {len(pods.pods):,} pods on {next(iter(nodes))}, while {len(seen):,} nodes are "
            "measured: the scrape of kube-state-metrics overwrites the label node, set honorLabels: true on it"
        )


def unmeasured_pods(pods: PodsOfDay, rows: Presence, usage: Floats32, facts: NodeFacts) -> list[Remark]:
    """Pods that ran, and of which neither CPU nor memory was measured, by what their nodes run on.

    usage : (n_pods, n_ticks, n_resources)
    """
    ticks = np.bincount(rows.pod, minlength=len(pods.pods))
    ran = ticks >= _LEAST_TICKS
    unknown: Bools = ran & ~np.isfinite(usage[:, :, [CPU, MEMORY]]).any(axis=(1, 2))
    if not unknown.any() or unknown.sum() <= _FEW_PODS * ran.sum():
        return []
    last = pods.last_life()
    lives = [pods.lives[last[pod]] for pod in np.flatnonzero(unknown).tolist()]
    nodes = Counter(life.node for life in lives)
    services = Counter(f"{life.namespace}/{life.service.service}" for life in lives)
    platforms = Counter(facts.runs_on.get(node, "") for node in nodes for _ in range(nodes[node]))
    platform = next((f" ({name})" for name, _ in platforms.most_common(1) if name), "")
    return [
        Remark(
            "unmeasured pods",
            f"{unknown.sum():,} of {ran.sum():,} running pods were never measured, on {_some(nodes)}{platform}; most "
            f"of them of {_some(services)}: neither their containers nor their own cgroups have series, look at what "
            "the kubelets there expose (/metrics/cadvisor, /metrics/resource) and what the scrape drops. They are "
            "forecast from their nodes and their requests",
        )
    ]


def unmatched_nodes(
    nodes: Sequence[str], node_usage: Floats32, with_pods: Collection[str], strangers: Sequence[str], facts: NodeFacts
) -> list[Remark]:
    """Nodes with pods and without usage, and names of node-exporter that are no nodes of Kubernetes.

    node_usage : (n_nodes, n_ticks, n_resources)
    Raises InputError where most nodes lack usage and as many names are not known: the two are the same machines.
    """
    measured: Bools = np.asarray(np.isfinite(node_usage[:, :, [CPU, MEMORY]]).any(axis=(1, 2)))
    lacking = [node for node, known in zip(nodes, measured.tolist(), strict=True) if node in with_pods and not known]
    if lacking and 2 * len(lacking) > len(with_pods) and 2 * len(strangers) >= len(lacking):
        raise InputError(
            f"node-exporter names {len(strangers):,} machines that Kubernetes does not know ({_some(strangers)}), and "
            f"{len(lacking):,} of {len(with_pods):,} nodes with pods have no usage ({_some(lacking)}): set the label "
            "node by relabelling the scrape of node-exporter, or prometheus.queries.node_*"
        )
    remarks = []
    if lacking and measured.any():
        platforms = Counter(facts.runs_on.get(node, "") for node in lacking)
        platform = next((f" ({name})" for name, _ in platforms.most_common(1) if name), "")
        remarks.append(
            Remark(
                "nodes without usage",
                f"{len(lacking):,} of {len(with_pods):,} nodes with pods have no usage: {_some(lacking)}{platform}; "
                "run node-exporter (windows_exporter) on them, until then their load is the sum of their pods",
            )
        )
    if strangers:
        remarks.append(
            Remark(
                "machines outside",
                f"node-exporter measures {len(strangers):,} machines that are no nodes of the cluster "
                f"({_some(strangers)}): they are left out",
                wrong=False,
            )
        )
    return remarks


def uncounted_sidecars(n_containers: int) -> list[Remark]:
    """n_containers: init containers that run beside their pods, and whose restart policy is not told."""
    if not n_containers:
        return []
    return [
        Remark(
            "sidecars",
            f"{n_containers:,} init containers run beside the others of their pods, and kube_pod_init_container_info "
            "has no label restart_policy: requests of sidecars are not counted, use kube-state-metrics 2.13 or newer",
        )
    ]


def _some(names: Collection[str] | Counter[str]) -> str:
    """The first names, those that count most where they are counted."""
    listed = [name for name, _ in names.most_common()] if isinstance(names, Counter) else list(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else "")
