"""Services of a history behind a HorizontalPodAutoscaler, minute by minute, and a model of the days before.

The load of a service is that of the history, interpolated between the middles of the half hours. Its pods request so
much that the replicas of the history run at 70 % of their request in the busiest half hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from autoscaling.services_ahead import ServicesAhead
from base.arrays import Floats, Ints
from benchmarks.clusters import build_asd_cluster, build_bitbrains_cluster
from benchmarks.clusters.autoscaling import autoscaled_replicas
from cluster.predicted.horizon import Horizon, start_of_slot
from cluster.predicted.pod_profiles import Profiles
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.fit import fit
from forecast.history import History
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from testing.objects import pod_info
from trainer.history.files import HistoryFiles

SAMPLE: Final = Path(__file__).parents[1] / "data" / "sample"
HISTORY_DAYS: Final = 28
UTILISATION: Final = 0.7
"""Target of the autoscalers."""
STABILISATION_MINUTES: Final = 5
NODES_AT_THE_PEAK: Final = 60
SPARE_MEMORY: Final = 1.5
"""Nodes have so much more memory than pods request, relative to cores: cores decide."""


@dataclass(frozen=True, slots=True)
class Services:
    """Some days of replicas, and the history that lies before them with the replicas of the same autoscalers.

    begins      : unix seconds of the first minute
    replicas    : (n_services, n_minutes) that the autoscalers ask for
    requests    : (n_services, 2) of one pod, cores and bytes
    allocatable : (2,) of one node
    known       : what a model may learn from
    """

    keys: tuple[ServiceKey, ...]
    begins: float
    replicas: Ints
    requests: Floats
    allocatable: Floats
    known: History

    @property
    def requested(self) -> Floats:
        """(n_minutes,) cores of all pods together."""
        return np.asarray(self.requests[:, 0] @ self.replicas)


def services_of(history: History, days: int) -> Services:
    """The services of a history that use cores; the last `days` days are played, the 28 before them are known."""
    history = history.before(history.n_days, keep=HISTORY_DAYS + days)
    total = np.nan_to_num(history.usage_per_pod[:, CPU] * history.replicas).astype(np.float64)
    total = total.reshape(len(total), -1)  # (n_services, n_slots)
    usual = np.nan_to_num(np.nanmedian(np.where(history.replicas > 0, history.replicas, np.nan), axis=(1, 2)))
    target = np.quantile(total, 0.995, axis=1) / np.maximum(usual, 1.0)
    runs_on = np.array([not key.runs_to_completion for key in history.services])
    chosen = np.flatnonzero(runs_on & (target > 1e-4) & (usual >= 2))
    total, usual, target = total[chosen], usual[chosen], target[chosen]
    n_minutes = total.shape[1] * SLOT_MINUTES
    minutes = np.arange(n_minutes)
    middles = (np.arange(total.shape[1]) + 0.5) * SLOT_MINUTES
    replicas = np.stack(
        [
            autoscaled_replicas(
                np.interp(minutes, middles, load),
                float(of_one),
                minimum=max(1, round(n / 5)),
                maximum=int(2 * n),
                stabilisation_slots=STABILISATION_MINUTES,
            )
            for load, of_one, n in zip(total, target, usual, strict=True)
        ]
    )
    requests = np.stack([target / UTILISATION, np.nan_to_num(history.requests[chosen, MEMORY], nan=2.0**28)], axis=1)
    played = slice(n_minutes - days * 24 * 60, n_minutes)
    of_node = (requests[:, 0] @ replicas[:, played]).max() / NODES_AT_THE_PEAK
    memory = (requests[:, 1] @ replicas[:, played]).max() / NODES_AT_THE_PEAK * SPARE_MEMORY
    return Services(
        keys=tuple(history.services[row] for row in chosen.tolist()),
        begins=start_of_slot(history.days[-days], 0, history.calendar.zone).timestamp(),
        replicas=replicas[:, played],
        requests=requests,
        allocatable=np.array([max(of_node, 2 * requests[:, 0].max()), max(memory, 2 * requests[:, 1].max())]),
        known=_with_replicas(history, chosen, replicas).before(history.n_days - days),
    )


def _with_replicas(history: History, chosen: Ints, replicas: Ints) -> History:
    """The history with these services alone and the replicas of the autoscalers: (n_chosen, n_minutes)."""
    by_slot = replicas.reshape(len(chosen), history.n_days, SLOTS_PER_DAY, SLOT_MINUTES).mean(axis=3)
    per_pod = history.usage_per_pod[chosen].copy()
    shared = history.replicas[chosen] / by_slot
    for resource in range(per_pod.shape[1]):
        if resource != MEMORY:
            per_pod[:, resource] *= shared
    usage, counts = history.usage_per_pod.copy(), history.replicas.copy()
    usage[chosen], counts[chosen] = per_pod, by_slot
    return replace(history, usage_per_pod=usage, replicas=counts)


def forecast_of(services: Services) -> ServicesAhead:
    """What a model of the known days expects of the days that are played, and of one more."""
    model = fit(services.known)
    profiles = Profiles(model)
    days = model.calendar.horizon(model.first_day, services.replicas.shape[1] // (24 * 60) + 1)
    return ServicesAhead(
        services=services.keys,
        examples=tuple(_example(key, requests) for key, requests in zip(services.keys, services.requests, strict=True)),
        replicas=services.replicas[:, 0].astype(np.float64),
        requests=services.requests,
        autoscaled=np.array([profiles.autoscaled(key) for key in services.keys], dtype=np.bool_),
        expected_replicas=profiles.expected_replicas(services.keys, days),
        load=profiles.total(services.keys, days),
        std=profiles.total_std(services.keys, days),
        horizon=Horizon(days, 0, model.calendar.zone),
    )


def _example(key: ServiceKey, requests: Floats) -> PodInfo:
    return pod_info(key.name, requests={"cpu": float(requests[0]), "memory": float(requests[1])})


@contextmanager
def histories(traces: Path | None, seed: int, only: str = "") -> Iterator[dict[str, Path]]:
    """Directories by name: the sample with seed 0, which it does not have, and clusters of the traces; gone afterwards.

    only: the one history that is wanted; "" = all
    """
    found = {"sample": SAMPLE} if seed == 0 and only in ("", "sample") else {}
    with TemporaryDirectory(prefix="nodes-in-time-") as scratch:
        for name, build in (("ASD", build_asd_cluster), ("Bitbrains", build_bitbrains_cluster)):
            if traces is not None and only in ("", name):
                found[name] = Path(scratch) / name
                build(traces, found[name], seed)
        yield found


def history_in(directory: Path) -> History:
    """Read the services of a history directory."""
    return HistoryFiles.open(directory).history()
