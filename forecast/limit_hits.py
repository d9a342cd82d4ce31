"""Half hours in which limits held pods back: throttled CPU, and memory at which containers were OOM-killed.

Usage of such half hours is less than the demand. What follows from them is in `hidden_demand`; trainer.history reads
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats32, Ints
from forecast.calendar import SLOTS_PER_DAY

THROTTLED: Final = 0.1
"""Share of CFS periods from which on a half hour is throttled. The alert CPUThrottlingHigh of kubernetes-mixin fires at
0.25 for 15 minutes; a mean over half an hour and over all pods is lower (benchmarks/hidden_demand.py)."""


@dataclass(frozen=True, slots=True)
class PodHits:
    """The same of single pods: one entry for each half hour in which a limit held a pod back.

    pod, slot : (n_hits,) row of the pod table; half hours from midnight of the history's first day
    throttled : (n_hits,) share of the CFS periods of its containers, 0..1; NaN = not known
    cores     : (n_hits,) what the pod used, mean over the half hour; NaN = not measured
    oom_bytes : (n_hits,) memory of the pod at an OOM kill, 0 = killed at an unknown level; NaN = not killed
    seen      : (n_services, n_days) whether CFS periods of any of its pods were counted on the day
    """

    pod: Ints
    slot: Ints
    throttled: Floats32
    cores: Floats32
    oom_bytes: Floats32
    seen: Bools

    def measure(self, pod: Ints, day: int, cpu: AnyFloats) -> None:
        """Fill in what pods used on a day: pod (n_here,) ascending; cpu (n_here, 48)."""
        inside = np.flatnonzero(self.slot // SLOTS_PER_DAY == day)
        row = np.searchsorted(pod, self.pod[inside])
        there = np.append(pod, -1)[row] == self.pod[inside]
        self.cores[inside[there]] = cpu[row[there], self.slot[inside[there]] % SLOTS_PER_DAY]

    def of_services(self, service: Ints, replicas: Floats32) -> LimitHits:
        """Fold pods into services.

        service  : (n_pods,) of the pod table
        replicas : (n_services, n_days, 48) pods present; those without an entry were not held back
        """
        replicas = replicas.reshape(len(replicas), -1)
        key = service[self.pod] * replicas.shape[1] + self.slot
        cells, group = np.unique(key, return_inverse=True)
        of_service, slot = cells // replicas.shape[1], cells % replicas.shape[1]
        share = np.nan_to_num(self.throttled)
        pods = np.maximum(np.nan_to_num(replicas[of_service, slot]), np.bincount(group, share > 0, len(cells)))
        cores, oom_bytes = (np.full(len(cells), np.nan, dtype=np.float32) for _ in range(2))
        held = share >= THROTTLED
        np.fmax.at(cores, group[held], self.cores[held])
        np.fmax.at(oom_bytes, group, self.oom_bytes)
        return LimitHits(
            service=of_service.astype(np.int32),
            slot=slot.astype(np.int32),
            throttled=(np.bincount(group, share, len(cells)) / np.maximum(pods, 1)).astype(np.float32),
            cores=cores,
            oom_bytes=oom_bytes,
            seen=self.seen,
        )


@dataclass(frozen=True, slots=True)
class LimitHits:
    """One entry for each half hour of a service in which a limit held one of its pods back.

    service, slot : (n_hits,) index into the services; half hours from midnight of the history's first day
    throttled     : (n_hits,) share of CFS periods that were throttled, mean over the pods, 0..1
    cores         : (n_hits,) highest usage of a pod that was throttled; NaN = none was, or it was not measured
    oom_bytes     : (n_hits,) highest memory of a pod at an OOM kill, 0 = at an unknown level; NaN = no kill
    seen          : (n_services, n_days) whether CFS periods of any pod were counted on the day
    """

    service: Ints
    slot: Ints
    throttled: Floats32
    cores: Floats32
    oom_bytes: Floats32
    seen: Bools

    def between(self, first_day: int, end_day: int) -> LimitHits:
        """Those of some days, counted from the first of them."""
        kept = (self.slot >= first_day * SLOTS_PER_DAY) & (self.slot < end_day * SLOTS_PER_DAY)
        slot = self.slot[kept] - first_day * SLOTS_PER_DAY
        return self._taken(kept, self.service[kept], slot, self.seen[:, first_day:end_day])

    def of(self, services: Bools) -> LimitHits:
        """Those of some services, whose rows are counted anew: (n_services,) which are kept."""
        kept = services[self.service]
        row = np.cumsum(services) - 1
        return self._taken(kept, row[self.service[kept]], self.slot[kept], self.seen[services])

    def later(self, n_days: int) -> LimitHits:
        """The same with days in front of which nothing is known."""
        unseen = np.zeros((len(self.seen), n_days), dtype=np.bool_)
        every = np.ones(len(self.slot), dtype=np.bool_)
        slot = self.slot + n_days * SLOTS_PER_DAY
        return self._taken(every, self.service, slot, np.concatenate([unseen, self.seen], axis=1))

    def _taken(self, kept: Bools, service: Ints, slot: Ints, seen: Bools) -> LimitHits:
        return LimitHits(service, slot, self.throttled[kept], self.cores[kept], self.oom_bytes[kept], seen)

    def arrays(self) -> Iterator[np.ndarray]:
        """All tables, in a fixed order."""
        for field in fields(self):
            yield getattr(self, field.name)
