"""Values that no cluster can have: what cleaning removed, and single half hours that no neighbour resembles."""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import AnyFloats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.quantiles import nan_quantile
from forecast.resources import MEMORY, RESOURCES
from trainer.audit.finding import AuditEvidence, Finding, FindingKind, service_finding
from trainer.history.cleaning import CleaningCause

_IMPOSSIBLE: Final = (
    CleaningCause.NOT_FINITE,
    CleaningCause.NEGATIVE,
    CleaningCause.ABOVE_CAPACITY,
    CleaningCause.BEYOND_NODE,
    CleaningCause.BEYOND_FLEET,
    CleaningCause.DUPLICATE,
    CleaningCause.NO_NAME,
    CleaningCause.BAD_CAPACITY,
    CleaningCause.UNKNOWN_OWNER,
    CleaningCause.LOG_SATURATED,
)

_WRONG_TIMES: Final = (CleaningCause.NO_TIME, CleaningCause.STRAY_TIME, CleaningCause.STEP)

SPIKE: Final = 10.0
"""Times the highest half hour elsewhere, from which on a single one is taken for a broken sample. A nightly backup
has its like on other days."""

DIP: Final = 0.01
"""Of the lower neighbour, down to which a half hour is a dip."""

_SELDOM_BELOW = 0.1  # of the median: the 0.05 quantile of a series that is never idle otherwise
_LEAST_SLOTS: Final = 7 * SLOTS_PER_DAY


def impossible_values(evidence: AuditEvidence) -> Finding | None:
    """What cleaning removed. Only of what was cut against the node's own usage the services are known."""
    lines = [line for cause in _IMPOSSIBLE for line in _lines(evidence, cause)]
    if not lines:
        return None
    slots = np.zeros(evidence.service_load.shape, dtype=np.int64)
    for one in evidence.cut:
        slots[one.service, one.resource] += one.slots
    what = "; ".join(lines)
    advice = (
        "negative values come from sum() before rate() in a query of your own; values above capacity from a wrong unit "
        "(millicores, MiB) or series counted twice; what exceeds its node from an exporter that misses part of it "
        "(train --report names service, node and ratio)"
    )
    of_services = service_finding(
        FindingKind.IMPOSSIBLE_VALUES,
        evidence,
        slots > 0,
        what=what.replace("{", "{{").replace("}", "}}"),
        advice=advice,
        detail=lambda s, r: f"{slots[s, r]} half hours beyond what its nodes used",
    )
    return of_services or Finding(
        FindingKind.IMPOSSIBLE_VALUES, 0, 0, np.full(len(RESOURCES), np.nan), what=what, advice=advice
    )


def wrong_times(evidence: AuditEvidence) -> Finding | None:
    """Reports rows that cleaning left out for their time."""
    lines = [line for cause in _WRONG_TIMES for line in _lines(evidence, cause)]
    if not lines:
        return None
    return Finding(
        FindingKind.WRONG_TIMES,
        0,
        0,
        np.full(len(RESOURCES), np.nan),
        what="; ".join(lines),
        advice="check NTP on the machines that write these rows, and the unit of the column timestamp (UTC); delete "
        "the key step of history.json where it is wrong",
    )


def _lines(evidence: AuditEvidence, cause: CleaningCause) -> list[str]:
    counts = evidence.report.counts
    return [
        f"{file}: {n:,} {cause.value}" for (file, found), n in sorted(counts.items(), key=str) if found is cause and n
    ]


# Single half hours that no neighbour resembles, as counters leave them that began anew or were read wrongly.
#
# Prometheus' rate() knows that a counter began anew, and goes on from 0. What still reaches a history: no usage at all
# for one half hour, or one that is many times everything else. Negative values were removed before
# (`trainer.audit.implausible_values`).


def lone_spikes(usage: AnyFloats) -> Ints:
    """1 where the highest value is `SPIKE` or more times all but its two neighbours, else 0: (n_series,).

    usage : (n_series, n_values) in the order of time, NaN = not measured
    """
    values = np.nan_to_num(usage, nan=0.0)
    rows, n = np.arange(len(values)), values.shape[1]
    peak = values.argmax(axis=1)
    highest = values[rows, peak]
    others = values.copy()
    for offset in (-1, 0, 1):
        others[rows, np.clip(peak + offset, 0, n - 1)] = 0.0
    second = others.max(axis=1)
    enough = np.isfinite(usage).sum(axis=1) >= _LEAST_SLOTS
    return np.asarray(enough & (second > 0) & (highest >= SPIKE * second), dtype=np.int64)


def lone_dips(usage: AnyFloats) -> Ints:
    """Half hours at almost nothing between two ordinary ones, of series that are never idle otherwise: (n_series,)."""
    enough = np.isfinite(usage).sum(axis=1) >= _LEAST_SLOTS
    middle, low = nan_quantile(usage, 0.5), nan_quantile(usage, 0.05)
    with np.errstate(invalid="ignore"):
        busy = enough & (middle > 0) & (low >= _SELDOM_BELOW * middle)
        inner, neighbours = usage[:, 1:-1], np.minimum(usage[:, :-2], usage[:, 2:])
        dips = (inner <= DIP * neighbours) & (neighbours >= _SELDOM_BELOW * middle[:, None])
    return np.asarray(np.where(busy, dips.sum(axis=1), 0), dtype=np.int64)


def counter_resets(evidence: AuditEvidence) -> Finding | None:
    """Finds services with such half hours in a resource that is counted."""
    usage = evidence.recent.usage_per_pod
    counters = [r for r in range(len(RESOURCES)) if r != MEMORY]  # a gauge has no resets
    spikes = np.zeros(usage.shape[:2], dtype=np.int64)
    dips = np.zeros(usage.shape[:2], dtype=np.int64)
    for r in counters:
        of_resource = usage[:, r].reshape(len(usage), -1)
        spikes[:, r], dips[:, r] = lone_spikes(of_resource), lone_dips(of_resource)
    return service_finding(
        FindingKind.COUNTER_RESETS,
        evidence,
        (spikes + dips) > 0,
        what=f"{{n}} have single half hours at almost nothing or at {SPIKE:g} times all others, as after restarts and "
        "counters that began anew or were read wrongly",
        advice="compare with restarts of the containers and their exporters at these times; a query of your own in "
        "prometheus.queries must take rate() before sum(), or resets look like usage",
        detail=lambda s, r: f"{dips[s, r]} dips, {spikes[s, r]} spikes",
    )
