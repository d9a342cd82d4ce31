"""Which pods ran when, where and owned by whom, from kube_pod_info. Pure.

A pod name may live several lives in a day: a StatefulSet pod that moves keeps its name and gets a new uid and node, and
series linger for up to five minutes. Where several lives overlap the one that began latest counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Ints
from base.errors import InputError
from forecast.service_key import NO_OWNER, Owner, ServiceKey, owner_from_labels, service_of_pod
from trainer.prometheus.matrix import Matrix

_MOST_LIVES_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class Life:
    """One pod object: a name from when it is bound to a node until it is gone."""

    namespace: str
    pod: str
    uid: str
    node: str
    service: ServiceKey
    host_network: bool


@dataclass(frozen=True, slots=True)
class PodsOfDay:
    """pods: (n_pods,) names. life: (n_pods, n_ticks) index into lives, -1 = not running."""

    pods: tuple[tuple[str, str], ...]
    lives: tuple[Life, ...]
    life: Ints

    @property
    def silent(self) -> Bools:
        """(n_ticks,) whether nothing at all was listed: a gap of kube-state-metrics."""
        silent: Bools = np.all(self.life < 0, axis=0)
        return silent

    def known_life(self) -> Ints:
        """(n_pods, n_ticks) the life running, else the last one before, else the next one."""
        n_ticks = self.life.shape[1]
        known = self.life.copy()
        for tick in range(1, n_ticks):
            known[:, tick] = np.where(known[:, tick] < 0, known[:, tick - 1], known[:, tick])
        for tick in range(n_ticks - 2, -1, -1):
            known[:, tick] = np.where(known[:, tick] < 0, known[:, tick + 1], known[:, tick])
        return known

    def last_life(self) -> Ints:
        """(n_pods,) the life each pod had last."""
        return self.known_life()[:, -1] if self.life.shape[1] else np.full(len(self.pods), -1, dtype=np.int64)


def pods_of_day(
    parts: Sequence[Matrix],
    n_ticks: int,
    owners: Mapping[tuple[str, str, str], Owner],
    on_host_network: Collection[tuple[str, str]] = (),
) -> PodsOfDay:
    """Join the pieces in which pod_info was read.

    owners          : owner of each (namespace, ReplicaSet or Job, its name), from owners_of; NO_OWNER if it has none
    on_host_network : pods that are, where the label host_network does not say
    Raises InputError if one pod has many lives at once: labels were lost on the way.
    """
    index: dict[tuple[str, ...], int] = {}
    life_of_sample, ticks = [], []
    for part in parts:
        numbers = np.array([index.setdefault(_key(labels), len(index)) for labels in part.labels], dtype=np.int64)
        inside = (part.tick >= 0) & (part.tick < n_ticks)
        life_of_sample.append(numbers[part.series[inside]])
        ticks.append(part.tick[inside])
    lives = tuple(_life(key, owners, on_host_network) for key in index)
    pods = tuple(sorted({(life.namespace, life.pod) for life in lives}))
    row = {pod: number for number, pod in enumerate(pods)}
    pod_of_life = np.array([row[life.namespace, life.pod] for life in lives], dtype=np.int64)
    table = np.full((len(pods), n_ticks), -1, dtype=np.int64)
    if not lives:
        return PodsOfDay((), (), table)
    life, tick = np.concatenate(life_of_sample), np.concatenate(ticks)
    at_once = np.bincount(_cells(pod_of_life, life, tick, n_ticks))
    if at_once.size and at_once.max() > _MOST_LIVES_AT_ONCE:
        namespace, pod = pods[int(at_once.argmax()) // n_ticks]
        raise InputError(
            f"query pod_info shows {at_once.max()} pods at once under the name {namespace}/{pod}: the scrape of "
            "kube-state-metrics overwrites the labels namespace and pod, set honorLabels: true on it"
        )
    first = np.full(len(lives), n_ticks)
    last = np.full(len(lives), -1)
    np.minimum.at(first, life, tick)
    np.maximum.at(last, life, tick)
    rank = np.empty(len(lives), dtype=np.int64)
    rank[np.lexsort((last, first))] = np.arange(len(lives))
    order = np.argsort(rank[life], kind="stable")
    table[pod_of_life[life[order]], tick[order]] = life[order]  # where cells repeat, the last assignment stays
    return PodsOfDay(pods, lives, table)


def owners_of(replica_sets: Matrix, jobs: Matrix) -> dict[tuple[str, str, str], Owner]:
    """Owners by (namespace, kind, name), from the queries replicaset_owner and job_owner."""
    owners = {}
    for kind, label, vector in (("ReplicaSet", "replicaset", replica_sets), ("Job", "job_name", jobs)):
        for labels in vector.labels:
            if not labels.get(label):
                name = label.removesuffix("_name") + "_owner"
                raise InputError(
                    f"query {name} returns a series without the label {label} (labels found: "
                    f"{', '.join(sorted(labels)) or 'none'}): keep it in prometheus.queries.{name}"
                )
            # Older exporters write "" where there is no owner, and Prometheus drops empty labels.
            if (owner := owner_from_labels(labels)) is not None:
                owners[labels.get("namespace", ""), kind, labels[label]] = owner
    return owners


def _key(labels: Mapping[str, str]) -> tuple[str, ...]:
    for label in ("namespace", "pod", "node"):
        if not labels.get(label):
            raise InputError(
                f"query pod_info returns a series without the label {label} (labels found: "
                f"{', '.join(sorted(labels)) or 'none'}): keep it in prometheus.queries.pod_info"
            )
    names = ("namespace", "pod", "uid", "node", "created_by_kind", "created_by_name", "host_network")
    return tuple(labels.get(name, "") for name in names)


def _life(
    key: tuple[str, ...],
    owners: Mapping[tuple[str, str, str], Owner],
    on_host_network: Collection[tuple[str, str]],
) -> Life:
    namespace, pod, uid, node, kind, name, host_network = key
    owner = owner_from_labels({"created_by_kind": kind, "created_by_name": name})
    if owner in (None, NO_OWNER) and pod.endswith(f"-{node}"):
        owner = Owner("Node", node)  # kube-state-metrics before 2.0 names no owner of a static pod
    service = service_of_pod(namespace, pod, owner, owner_of_owner=owners.get((namespace, kind, name)))
    on_host = host_network == "true" or (not host_network and (namespace, pod) in on_host_network)
    return Life(namespace, pod, uid, node, service, on_host)


def _cells(pod_of_life: Ints, life: Ints, tick: Ints, n_ticks: int) -> Ints:
    """(n_pairs,) pod x tick of each different pair of life and tick."""
    pairs = np.unique(life * n_ticks + tick)
    cells: Ints = pod_of_life[pairs // n_ticks] * n_ticks + pairs % n_ticks
    return cells
