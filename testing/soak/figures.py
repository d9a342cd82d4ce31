"""Whether memory and latency stay as they were: figures of each day, and what a week would add to them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

_DAYS_A_WEEK: Final = 7
_BUCKET = re.compile(r"^(\w+)_bucket\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Growth:
    """In a week, as a share of the level. error: standard error of that; inf with fewer than three days."""

    level: float
    a_week: float
    error: float


def growth(values: Sequence[float]) -> Growth:
    """Of one figure per day, by least squares."""
    level = median(values)
    n = len(values)
    if n < 2:
        return Growth(level, 0.0, math.inf)
    days = np.arange(n) - (n - 1) / 2
    spread = float((days**2).sum())
    slope = float((days * np.asarray(values)).sum()) / spread
    rest = np.asarray(values) - np.mean(values) - slope * days
    error = math.sqrt(float((rest**2).sum()) / (n - 2) / spread) if n > 2 else math.inf
    return Growth(level, slope * _DAYS_A_WEEK / level, error * _DAYS_A_WEEK / level)


def thirds(values: Sequence[float]) -> tuple[float, float]:
    """Median of the first third and of the last."""
    n = max(1, len(values) // 3)
    return median(values[:n]), median(values[-n:])


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts up to each bound, as Prometheus has them."""

    counts: Mapping[float, float]

    def since(self, earlier: Histogram) -> Histogram:
        """What has come since; all of it where the process has been started anew."""
        if any(self.counts.get(bound, 0.0) < n for bound, n in earlier.counts.items()):
            return self
        return Histogram({bound: n - earlier.counts.get(bound, 0.0) for bound, n in self.counts.items()})

    @property
    def n(self) -> int:
        """How many."""
        return int(max(self.counts.values(), default=0.0))

    def quantile(self, share: float) -> float:
        """As histogram_quantile reckons it: even within a bucket; NaN of nothing."""
        rank, below, from_ = share * self.n, 0.0, 0.0
        for bound, count in sorted(self.counts.items()):
            if count and count >= rank:
                if math.isinf(bound):
                    return from_
                return from_ + (bound - from_) * (rank - below) / (count - below) if count > below else bound
            below, from_ = count, bound
        return math.nan


def histogram(text: str, name: str, **labels: str) -> Histogram:
    """Of a text of metrics, summed over the labels that are not named."""
    counts: dict[float, float] = {}
    for line in text.splitlines():
        if (found := _BUCKET.match(line)) is None or found[1] != name:
            continue
        has = dict(_LABEL.findall(found[2]))
        if all(has.get(key) == value for key, value in labels.items()):
            bound = float(has["le"])
            counts[bound] = counts.get(bound, 0.0) + float(found[3])
    return Histogram(counts)
