"""The treatment of samples that cannot be true, and how it is reported.

Nothing here reads files. A bad value becomes "not measured" (NaN), a bad row is left out, and each cause is counted
and reported in one line; input that cannot be mended raises InputError where it is read.

    cause                 treatment
    not finite            NaN, infinity: not measured
    negative              not measured
    above capacity        more than CAPACITY_TOLERANCE x capacity of the node on that day: not measured
    beyond node           more than the node itself used (forecast.usage_limits): not measured
    beyond fleet          node without a known capacity, FLEET_FACTOR x what nodes use at most: not measured
    duplicate             same pod or node at the same time: the last row counts
    no time               no timestamp, or one outside 2000..2099: row left out
    stray time            far from all other rows (a wrong clock): row left out
    no name               no namespace, service or pod (node rows: no node): row left out
    with node             pods that come with their node (DaemonSet, StaticPod): they count as the node's base
    one off               owners that ran once under generated names (forecast.one_off_owners): a service together
    partial day           less than half of the first or last day is there, or hardly any row: day cut off
    unknown owner         usage of a pod that kube-state-metrics never listed that day: left out
    log saturated         a container at its log rotation cap looks silent to the kubelet: not measured
    bad capacity          capacity that is not a positive number, request that is negative or not finite: unknown
                          (a request of zero stays: the pod asks for nothing)

Rows may come in any order; a service that only reports zeros stays a service that uses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from base.arrays import Floats, Floats32, Ints
from forecast.usage_limits import FLEET_FACTOR

CAPACITY_TOLERANCE = 2.0
"""Usage above this many capacities is a broken counter. Real samples do pass 1: rates of bursts, burstable disks."""


class CleaningCause(Enum):
    """Why a value or row was not used; the text completes "12,345 ..."."""

    NOT_FINITE = "values are NaN or infinite: taken as not measured"
    NEGATIVE = "values are negative: taken as not measured"
    ABOVE_CAPACITY = f"values exceed {CAPACITY_TOLERANCE:g} x the node's capacity: taken as not measured"
    BEYOND_NODE = "half hours of services exceed what their node used: taken as not measured"
    BEYOND_FLEET = f"half hours of nodes exceed {FLEET_FACTOR:,g} x what nodes use at most: taken as not measured"
    DUPLICATE = "rows repeat a series and time: the last row counts"
    NO_TIME = "rows have no timestamp between 2000 and 2099: left out"
    STRAY_TIME = "rows lie far from all other times: left out"
    NO_NAME = "rows lack a name in a key column: left out"
    WITH_NODE = "rows belong to DaemonSets or static pods: counted as the base load of their nodes"
    ONE_OFF = "owners with generated names ran once: those whose names are alike count as one service"
    BAD_CAPACITY = "capacities are not positive or requests negative, or not finite: taken as unknown"
    MISSING_COLUMN = "usage columns are missing: taken as not measured"
    UNKNOWN_POD = "pods are not in pods.parquet: their requests are unknown"
    UNKNOWN_NODE = "nodes are not in capacity.parquet: their capacity is unknown"
    PARTIAL_DAY = "days at the ends have less than half their slots or hardly any rows: cut off"
    UNKNOWN_KEY = "keys are not settings of a history: ignored"
    UNKNOWN_OWNER = "pods have usage but kube-state-metrics never listed them: left out"
    LOG_SATURATED = "log samples of containers at their rotation cap: taken as not measured"
    STEP = "step in history.json does not fit the samples: the measured step is used"


@dataclass(frozen=True, slots=True)
class CleaningReport:
    """How often each cause was met, per file of the history."""

    counts: Mapping[tuple[str, CleaningCause], int] = field(default_factory=dict)

    def total(self, cause: CleaningCause) -> int:
        return sum(count for (_, found), count in self.counts.items() if found is cause)

    def lines(self) -> list[str]:
        """One sentence per file and cause, in a stable order; empty if nothing was wrong."""
        ordered = sorted(self.counts.items(), key=lambda item: (item[0][0], list(CleaningCause).index(item[0][1])))
        return [f"{file}: {count:,} {cause.value}" for (file, cause), count in ordered if count]


class Tally:
    """Collects the counts of a CleaningReport while files are read."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, CleaningCause]] = Counter()

    def add(self, file: str, cause: CleaningCause, count: int) -> None:
        """Count further cases of a cause."""
        if count:
            self._counts[file, cause] += count

    def set(self, file: str, cause: CleaningCause, count: int) -> None:
        """Replace a count: for facts about the whole file, which may be established more than once."""
        self._counts[file, cause] = count

    def report(self) -> CleaningReport:
        """What was counted so far."""
        return CleaningReport({key: count for key, count in self._counts.items() if count})


def clean_usage(values: Floats32, n_null: int, node: Ints, capacity: Floats) -> dict[CleaningCause, int]:
    """Turn impossible values into NaN, in place, and say how many there were of each kind.

    values   : (n_rows, n_resources) float32; NaN also stands for null
    n_null   : how many of the NaN are nulls, which are not worth a remark
    node     : (n_rows,) index into capacity, of the node or of the node on a day; -1 = unknown
    capacity : (n_nodes, n_resources) or (n_days * n_nodes, n_resources); NaN = not a limit
    """
    counts: dict[CleaningCause, int] = {}
    finite = np.isfinite(values)
    n_broken = values.size - int(np.count_nonzero(finite)) - n_null
    if n_broken > 0:
        counts[CleaningCause.NOT_FINITE] = n_broken
        values[~finite] = np.nan
    # NaN compares false with everything, so the two tests below need no mask.
    with np.errstate(invalid="ignore"):
        negative = values < 0
        if n_negative := int(np.count_nonzero(negative)):
            counts[CleaningCause.NEGATIVE] = n_negative
            values[negative] = np.nan
        if len(capacity) and len(values):
            # Looking up every row's node is the slow part: needless while no value exceeds the smallest limit.
            limit = (CAPACITY_TOLERANCE * capacity).astype(np.float32)
            smallest = np.fmin.reduce(limit, axis=0)
            suspect = np.flatnonzero((values > smallest).any(axis=1))
            suspect = suspect[node[suspect] >= 0]
            above = values[suspect] > limit[node[suspect]]
            if n_above := int(np.count_nonzero(above)):
                counts[CleaningCause.ABOVE_CAPACITY] = n_above
                values[suspect] = np.where(above, np.float32(np.nan), values[suspect])
    return counts
