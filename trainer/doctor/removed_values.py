"""Values that no cluster can have: what cleaning removed, and what nodes used beyond their capacity."""

from __future__ import annotations

from typing import Final

import numpy as np

from forecast.resources import RESOURCES
from trainer.doctor.evidence import Evidence
from trainer.doctor.finding import Finding, Kind, node_finding, service_finding
from trainer.history.cleaning import Cause

_IMPOSSIBLE: Final = (
    Cause.NOT_FINITE,
    Cause.NEGATIVE,
    Cause.ABOVE_CAPACITY,
    Cause.BEYOND_NODE,
    Cause.BEYOND_FLEET,
    Cause.DUPLICATE,
    Cause.NO_NAME,
    Cause.BAD_CAPACITY,
    Cause.UNKNOWN_OWNER,
    Cause.LOG_SATURATED,
)
_WRONG_TIMES: Final = (Cause.NO_TIME, Cause.STRAY_TIME, Cause.STEP)

_ABOVE: Final = 1.02  # rates of short steps round up
_LEAST_HALF_HOURS: Final = 4


def impossible_values(evidence: Evidence) -> Finding | None:
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
        Kind.IMPOSSIBLE_VALUES,
        evidence,
        slots > 0,
        what=what.replace("{", "{{").replace("}", "}}"),
        advice=advice,
        detail=lambda s, r: f"{slots[s, r]} half hours beyond what its nodes used",
    )
    return of_services or Finding(
        Kind.IMPOSSIBLE_VALUES, 0, 0, np.full(len(RESOURCES), np.nan), what=what, advice=advice
    )


def above_capacity(evidence: Evidence) -> Finding | None:
    """Finds nodes that used more than they have, though less than what cleaning removes."""
    capacity = evidence.recent.capacity_of_days
    with np.errstate(invalid="ignore"):
        n_above = (evidence.recent.node_usage > _ABOVE * capacity[..., None]).sum(axis=(2, 3))
    return node_finding(
        Kind.ABOVE_CAPACITY,
        evidence,
        n_above >= _LEAST_HALF_HOURS,
        what=f"{{n}} used more than their capacity in {_LEAST_HALF_HOURS} half hours or more",
        advice="correct what is configured (prometheus.disk_capacity, prometheus.network_capacity, "
        "prometheus.log_capacity, the annotation forecast-scheduler.io/capacity), or the unit of the node's query",
        detail=lambda n, r: f"{n_above[n, r]} half hours above",
    )


def wrong_times(evidence: Evidence) -> Finding | None:
    """Reports rows that cleaning left out for their time."""
    lines = [line for cause in _WRONG_TIMES for line in _lines(evidence, cause)]
    if not lines:
        return None
    return Finding(
        Kind.WRONG_TIMES,
        0,
        0,
        np.full(len(RESOURCES), np.nan),
        what="; ".join(lines),
        advice="check NTP on the machines that write these rows, and the unit of the column timestamp (UTC); delete "
        "the key step of history.json where it is wrong",
    )


def _lines(evidence: Evidence, cause: Cause) -> list[str]:
    counts = evidence.report.counts
    return [
        f"{file}: {n:,} {cause.value}" for (file, found), n in sorted(counts.items(), key=str) if found is cause and n
    ]
