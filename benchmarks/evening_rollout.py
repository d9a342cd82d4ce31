"""300 pods of the sample on 60 nodes of ratio 1 : 2 : 4, and what their evenings were really like.

Which services: those whose pods were all there all the time (nothing autoscaled), drawn until they make 300 pods. The
model knows the weeks before the one that is played back; both are moved in time so that the model is of today. Nodes
are sized so that the load at its 99th percentile is 60 % of the cluster's CPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from benchmarks.night_jobs import NightJobs, history_with_nights, jobs_on_every_second_node
from benchmarks.zones_and_images import (
    ZONE_LABEL,
    Protected,
    image_entries,
    image_of,
    images_on_nodes,
    protected,
    zone_of,
)
from cluster.predicted.node_capacity import CAPACITY_ANNOTATION
from cluster.predicted.power_growth import RESOURCE_WEIGHTS, power_growth
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.fit import fit
from forecast.hot_share import HOT_SHARE
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from scorer.replay.replay_figures import daily_peaks, hot_node_slots, peak_variation, shares
from testing.servers.cluster_objects import Manifest, node, pod, replica_set
from trainer.history.files import HistoryFiles

N_PODS, SIZES, DAYS = 300, np.repeat([1.0, 2.0, 4.0], [30, 20, 10]), 7
_LOAD = np.array([0.60, 0.50, 0.42, 0.43, 0.36])
"""Of capacity, at the 99th percentile, by resource; their ratios are the sample's own."""

_BASE = 0.02  # of capacity: daemons
_EVENING = range(2 * 17, 2 * 23)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a placement did to the nodes over the evenings of the days after that of the placement.

    hot      : share of node-half-hours from 17:00 to 23:00 in which a node is over 80 % of any resource that counts
    hot_all  : the same of all hours
    cpu_peak_variation : coefficient of variation of the nodes' daily CPU peaks
    """

    hot: float
    hot_all: float
    cpu_peak_variation: float


@dataclass(frozen=True, slots=True)
class EveningRollout:
    """Everything but the scheduler.

    services : of each pod, (n_pods,) index into `keys`
    requests : (n_pods, 2) cores and bytes
    load     : (n_pods, n_resources, n_slots) what the pods really use, from midnight of the first day
    capacity : (n_nodes, n_resources)
    order    : (n_pods,) in which the pods arrive
    images   : (n_services, n_nodes) which node has the image of which service
    jobs     : CronJob pods that run at the release and end an hour later; None = there are none
    """

    model: PeakModel
    keys: tuple[ServiceKey, ...]
    services: Ints
    requests: Floats
    load: Floats32
    capacity: Floats
    order: Ints
    images: Bools
    jobs: NightJobs | None = None

    @property
    def node_names(self) -> list[str]:
        """By row of `capacity`."""
        return [f"node-{row:02d}" for row in range(len(self.capacity))]

    def nodes(self) -> list[Manifest]:
        """Node objects with capacities of all five resources, a zone and images."""
        made = [_node(name, row) for name, row in zip(self.node_names, self.capacity, strict=True)]
        for row, manifest in enumerate(made):
            manifest["metadata"]["labels"][ZONE_LABEL] = zone_of(row)
            manifest["status"]["images"] = image_entries(self.keys, self.images[:, row])
        return made

    def replica_sets(self) -> list[Manifest]:
        """One per service, as its Deployment would have made it."""
        counts = np.bincount(self.services, minlength=len(self.keys))
        return [
            replica_set(_set_name(key), namespace=key.namespace, deployment=key.name, desired_replicas=int(count))
            for key, count in zip(self.keys, counts, strict=True)
        ]

    def pods(self, replica_sets: Sequence[Manifest], **fields: Any) -> list[Manifest]:
        """Pods to be scheduled, in the order of their arrival. replica_sets: as the API server made them."""
        owner = {made["metadata"]["name"]: made for made in replica_sets}
        manifests = []
        for i in self.order.tolist():
            key = self.keys[int(self.services[i])]
            labels = {"app": key.name, "pod-template-hash": _set_name(key).rpartition("-")[2]}
            requests = {"cpu": f"{round(self.requests[i, 0] * 1000)}m", "memory": f"{self.requests[i, 1]:.0f}"}
            manifest = pod(
                self.pod_name(i), namespace=key.namespace, owner=owner[_set_name(key)], requests=requests, labels=labels
            )
            manifest["spec"]["containers"][0]["image"] = image_of(key)
            manifest["spec"] |= fields
            manifests.append(manifest)
        return manifests

    def pod_name(self, pod_index: int) -> str:
        """Name of a pod, the same in every run."""
        return f"{_set_name(self.keys[int(self.services[pod_index])])}-{pod_index:03d}"

    def placement(self, node_of: Mapping[str, str]) -> Ints:
        """(n_pods,) row of each pod's node. node_of: by pod name; every pod must be there."""
        row_of = {name: row for row, name in enumerate(self.node_names)}
        return np.array([row_of[node_of[self.pod_name(i)]] for i in range(len(self.services))])

    def oracle(self) -> Ints:
        """(n_pods,) placed one after the other where the true future grows least: sum of C x^4, memory 0.25."""
        n_slots = self.load.shape[2]
        share = np.full((len(self.capacity), len(RESOURCES), n_slots), _BASE)
        weights = RESOURCE_WEIGHTS * self.capacity / self.capacity.mean(axis=0)
        free = 0.98 * self.capacity[:, [CPU, MEMORY]]
        if self.jobs is not None:
            free[self.jobs.rows] -= self.jobs.requests
        rows = np.zeros(len(self.services), dtype=np.int64)
        for i in self.order.tolist():
            of_pod = self.load[i][None] / self.capacity[:, :, None]
            growth = power_growth(share, of_pod, np.ones(n_slots), weights)
            fits = (free >= self.requests[i]).all(axis=1)
            row = int(np.where(fits, growth, np.inf).argmin())
            share[row] += of_pod[row]
            free[row] -= self.requests[i]
            rows[i] = row
        return rows

    def outcome(self, placement: Ints) -> Outcome:
        """Play the days back."""
        share = self.node_shares(placement)[:, :, SLOTS_PER_DAY:]
        hot: Bools = hot_node_slots(share, HOT_SHARE)
        evening = np.isin(np.arange(share.shape[2]) % SLOTS_PER_DAY, list(_EVENING))
        return Outcome(
            hot=float(hot[:, evening].mean()),
            hot_all=float(hot.mean()),
            cpu_peak_variation=float(peak_variation(daily_peaks(share))[CPU]),
        )

    def protected(self, placement: Ints) -> Protected:
        """What the placement left of zone spread and images at hand."""
        return protected(placement, self.services, self.images)

    def node_shares(self, placement: Ints) -> Floats:
        """(n_nodes, n_resources, n_slots) share of capacity in use."""
        load = np.zeros((len(self.capacity), *self.load.shape[1:]))
        np.add.at(load, placement, self.load)
        return shares(load, self.capacity) + _BASE


def evening_rollout(
    today: date, *, history: Path = Path("data/sample"), seed: int = 0, night_zone: str | None = None
) -> EveningRollout:
    """The rollout with a model whose first day is `today`.

    night_zone : time zone of a model that knows of CronJobs every night, which run at the release too; None = no jobs
    """
    files = HistoryFiles.open(history)
    known = files.history()
    first = known.n_days - DAYS
    usage = files.pod_usage(known.days[first], known.days[-1])
    measured = np.isfinite(usage.usage).any(axis=(0, 2, 3))  # of the traces not all resources are
    always: Bools = np.asarray(
        (usage.present > 0.99).all(axis=(1, 2)) & np.isfinite(usage.usage[:, measured]).all(axis=(1, 2, 3))
    )
    ever: Bools = np.asarray((usage.present > 0).any(axis=(1, 2)))
    rng = np.random.default_rng(seed)
    pods = _whole_services(usage.service, ever, always, rng)
    load = np.nan_to_num(usage.usage[pods]).reshape(len(pods), len(RESOURCES), -1)
    used, services = np.unique(usage.service[pods], return_inverse=True)
    total = np.quantile(load.sum(axis=0, dtype=np.float64), 0.99, axis=1)  # (n_resources,)
    # What is not measured is never full, and memory has room for the requests.
    asked = np.array([0.0, np.nan_to_num(usage.requests[pods])[:, 1].sum(), 0.0, 0.0, 0.0])
    total = np.where(measured, total, np.maximum(asked, 1.0))
    capacity = SIZES[:, None] / SIZES.sum() * (total / _LOAD)
    jobs = None
    if night_zone is not None:
        jobs = jobs_on_every_second_node(capacity)
        known = history_with_nights(history, jobs, seed)
    model = fit(known.before(first))
    calendar = model.calendar if night_zone is None else Calendar(night_zone)
    return EveningRollout(
        model=replace(model, first_day=today, calendar=calendar),
        keys=tuple(usage.services[s] for s in used.tolist()),
        services=services,
        requests=_requests(np.nan_to_num(usage.requests[pods]), capacity),
        load=load,
        capacity=capacity,
        order=rng.permutation(len(pods)),
        images=images_on_nodes(len(used), len(capacity), rng),
        jobs=jobs,
    )


def _requests(requests: Floats, capacity: Floats) -> Floats:
    """The sample's, scaled to 55 % of the cluster, at most half of a small node: nobody releases what does not fit."""
    fitting = requests * np.minimum(0.55 * capacity[:, [CPU, MEMORY]].sum(axis=0) / requests.sum(axis=0), 1.0)
    return np.asarray(np.clip(fitting, [0.01, 2.0**20], 0.5 * capacity[:, [CPU, MEMORY]].min(axis=0)))


def _whole_services(service: Ints, ever: Bools, always: Bools, rng: np.random.Generator) -> Ints:
    """N_PODS pods: all those of some services, drawn at random until they add up."""
    whole = {s: np.flatnonzero(ever & (service == s)) for s in np.unique(service[always]).tolist()}
    whole = {s: pods for s, pods in whole.items() if always[pods].all()}
    for _ in range(10_000):
        chosen: list[int] = []
        for s in rng.permutation(list(whole)).tolist():
            if len(chosen) + len(whole[s]) <= N_PODS:
                chosen += whole[s].tolist()
        if len(chosen) == N_PODS:
            return np.array(chosen)
    raise ValueError(f"no choice of whole services makes {N_PODS} pods")


def _node(name: str, capacity: Floats) -> Manifest:
    manifest = node(
        name,
        cpu=f"{capacity[CPU]:.3f}",
        memory=f"{capacity[MEMORY]:.0f}",
        reserved_cpu=f"{round(0.02 * capacity[CPU] * 1000)}m",
    )
    others = {r.name: f"{capacity[i]:.0f}" for i, r in enumerate(RESOURCES) if i not in (CPU, MEMORY)}
    manifest["metadata"]["annotations"] = {CAPACITY_ANNOTATION: json.dumps(others)}
    return manifest


def _set_name(key: ServiceKey) -> str:
    return f"{key.name}-5d9c7b6f4d"
