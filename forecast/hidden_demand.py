"""Services whose demand is more than their usage shows, since limits held them back: how often, and what is known.

A container that wants more CPU than its limit is throttled in periods of 0.1 s, and its usage over half an hour stays
below the limit by amounts that vary. Usage alone finds only ceilings that are flat (trainer.audit.unknowns). Throttled
periods tell of the others, and an OOM kill of memory that was not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from base.arrays import Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.limit_hits import THROTTLED
from forecast.quantiles import nan_quantile
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey
from forecast.usage_limits import LARGEST

RECENT_DAYS: Final = 14
"""Days back that count: older ones are of versions and limits that no longer run."""

INFO: Final = "hidden_demand"
"""Where `PeakModel.info` has the services of which demand is hidden: by name, the values of HiddenDemand."""

LEAST_SHARE: Final = 0.05
"""Share of the peak half hours that are throttled from which on demand is hidden; see benchmarks/hidden_demand.py."""

_PEAK: Final = 0.9
"""Quantile of usage from which on a half hour is a peak half hour: 2.4 hours of a day."""

_AT_LEAST: Final = 0.95
"""Quantile of what throttled pods used that demand is at least: one odd pod in twenty half hours does not set it."""

_LEAST_PEAKS: Final = 5  # fewer peak half hours say nothing


@dataclass(frozen=True, slots=True)
class HiddenDemand:
    """Of one pod of each service; (n_services,) each.

    throttled : share of its peak half hours that were throttled; 0 = less than LEAST_SHARE, or not known
    cores     : what demand is at least; NaN = not hidden
    oom_kills : half hours in which a container was OOM-killed
    oom_bytes : highest memory at a kill; NaN = no kill, or at an unknown level
    """

    throttled: Floats
    cores: Floats
    oom_kills: Ints
    oom_bytes: Floats

    @classmethod
    def none(cls, n_services: int) -> HiddenDemand:
        """Nothing is hidden, or nothing is known of it."""
        unknown = np.full(n_services, np.nan)
        return cls(np.zeros(n_services), unknown, np.zeros(n_services, dtype=np.int64), unknown.copy())

    def with_more(self, n_services: int) -> HiddenDemand:
        """The same followed by services of which nothing is known."""
        more = HiddenDemand.none(n_services)
        both = ((getattr(self, one.name), getattr(more, one.name)) for one in fields(self))
        return HiddenDemand(*map(np.concatenate, both))

    @property
    def marked(self) -> Bools:
        """(n_services, 2) whether demand for CPU and for memory is hidden."""
        return np.stack([self.throttled > 0, self.oom_kills > 0], axis=1)

    def words(self, row: int) -> Iterator[str]:
        """What is hidden of the service in this row, a clause for each resource."""
        if self.throttled[row] > 0:
            least = f", at least {self.cores[row]:.3g} cores per pod" if np.isfinite(self.cores[row]) else ""
            share = f"{100 * self.throttled[row]:.0f} % of its peak half hours"
            yield f"throttled in {share}: real demand is hidden{least}"
        if (n := int(self.oom_kills[row])) > 0:
            level = f" at {self.oom_bytes[row] / 2**20:,.0f} MiB" if np.isfinite(self.oom_bytes[row]) else ""
            yield f"OOM-killed in {n} half hour{'s' if n > 1 else ''}{level}: it needs more memory than it had"

    def to_info(self, services: Sequence[ServiceKey]) -> dict[str, Any]:
        """The entry for `PeakModel.info`; {} = nothing is hidden."""
        rows = np.flatnonzero(self.marked.any(axis=1)).tolist()
        return (
            {INFO: {str(services[row]): [_or_none(one) for one in self._values(row)] for row in rows}} if rows else {}
        )

    @classmethod
    def of_info(cls, info: Mapping[str, Any], services: Sequence[ServiceKey]) -> HiddenDemand:
        """As a model was published with it; entries of another form are left out."""
        found, known = cls.none(len(services)), info.get(INFO)
        by_name: Mapping[str, Any] = known if isinstance(known, Mapping) else {}
        for row, service in enumerate(services):
            values = by_name.get(str(service))
            if not isinstance(values, list) or len(values) != len(_HIGHEST):
                continue
            numbers = [np.nan if not isinstance(one, int | float) else float(one) for one in values]
            good = [0 <= one <= most for one, most in zip(numbers, _HIGHEST, strict=True)]
            found.throttled[row], found.cores[row] = numbers[0] if good[0] else 0.0, numbers[1] if good[1] else np.nan
            found.oom_kills[row] = int(numbers[2]) if good[2] else 0
            found.oom_bytes[row] = numbers[3] if good[3] else np.nan
        return found

    def _values(self, row: int) -> tuple[float, ...]:
        return tuple(float(getattr(self, one.name)[row]) for one in fields(self))


_HIGHEST: Final = (1.0, float(LARGEST[CPU]), float(RECENT_DAYS * SLOTS_PER_DAY), float(LARGEST[MEMORY]))


def hidden_demand(history: History) -> HiddenDemand:
    """What the last days of a history hide."""
    recent = history.before(history.n_days, keep=RECENT_DAYS)
    n_services, hits = len(recent.services), recent.limit_hits
    found = HiddenDemand.none(n_services)
    if hits is None:
        return found
    used = recent.usage_per_pod[:, CPU]  # (n_services, n_days, 48)
    known = np.where(hits.seen[:, :, None] & (np.nan_to_num(recent.replicas) > 0), used, np.nan)
    known = known.reshape(n_services, -1)
    throttled = np.zeros(known.shape, dtype=np.bool_)
    held = hits.throttled >= THROTTLED
    throttled[hits.service[held], hits.slot[held]] = True
    some = hits.seen.any(axis=1)
    top = np.full(n_services, np.nan)
    top[some] = nan_quantile(known[some], _PEAK)
    with np.errstate(invalid="ignore"):
        peak = (known >= top[:, None]) & (known > 0)
    n_peaks = peak.sum(axis=1)
    share = (peak & throttled).sum(axis=1) / np.maximum(n_peaks, 1)
    found.throttled[:] = np.where((n_peaks >= _LEAST_PEAKS) & (share >= LEAST_SHARE), share, 0.0)
    for row in np.flatnonzero(found.throttled > 0).tolist():
        cores = hits.cores[held & (hits.service == row)]
        found.cores[row] = float(nan_quantile(cores[None], _AT_LEAST)[0])
    killed = np.isfinite(hits.oom_bytes)
    np.add.at(found.oom_kills, hits.service[killed], 1)
    np.fmax.at(found.oom_bytes, hits.service[killed], np.where(hits.oom_bytes > 0, hits.oom_bytes, np.nan)[killed])
    return found


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None
