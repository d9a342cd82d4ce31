"""Pieces of answers -> dense arrays of a day, recorded samples first, raw ones where nothing was recorded. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from base.arrays import Bools, Floats32
from base.errors import InputError
from forecast.resources import MEMORY
from trainer.history.cleaning import CleaningCause, Tally
from trainer.prometheus.matrix import Matrix

_MOST_BROKEN = 0.5
"""Share of values that may be impossible before the query is to blame."""

Name = TypeVar("Name")


class NamesOf(Protocol[Name]):
    """Which pod or node each series is about (trainer.prometheus.node_names)."""

    def __call__(self, name: str, labels: Sequence[Mapping[str, str]], *, once: bool) -> list[Name]: ...


@dataclass(frozen=True, slots=True)
class Samples:
    """What was read of one resource: pieces from recording rules and from raw queries.

    raw_ticks : (n_ticks,) where raw samples count
    """

    recorded: Sequence[Matrix]
    raw: Sequence[Matrix]
    raw_ticks: Bools
    name: str

    @property
    def parts(self) -> tuple[Matrix, ...]:
        return (*self.recorded, *self.raw)


def covered_ticks(parts: Sequence[Matrix], n_ticks: int) -> Bools:
    """(n_ticks,) whether there is any sample."""
    covered = np.zeros(n_ticks, dtype=bool)
    for part in parts:
        inside = part.tick[(part.tick >= 0) & (part.tick < n_ticks)]
        covered[inside] = True
    return covered


def place(
    samples: Samples,
    out: Floats32,
    row: Mapping[Name, int],
    names: NamesOf[Name],
    file: str,
    tally: Tally,
) -> set[Name]:
    """Write samples into out[row, tick] and return the names that have no row.

    out   : (n_rows, n_ticks), NaN where nothing was measured; of two series with one row the larger counts
    names : which pod or node each series is about
    Raises InputError where most of the values cannot be true: that is the query's doing.
    """
    missing: set[Name] = set()
    n_ticks, n_values, n_broken = out.shape[1], 0, 0
    for recorded, parts in ((True, samples.recorded), (False, samples.raw)):
        for part in parts:
            found = names(samples.name, part.labels, once=not recorded)  # replicas record everything twice
            rows = np.array([row.get(name, -1) for name in found], dtype=np.int64)
            missing.update(name for name, number in zip(found, rows.tolist(), strict=True) if number < 0)
            if not len(part.values):
                continue
            at = rows[part.series]
            good = (at >= 0) & (part.tick >= 0) & (part.tick < n_ticks)
            if not recorded:
                good &= samples.raw_ticks[np.where(good, part.tick, 0)]
            with np.errstate(over="ignore"):  # beyond float32 is infinite, and counted as that
                values = part.values[good].astype(np.float32)
            n_values += len(values)
            for cause, broken in (
                (CleaningCause.NOT_FINITE, ~np.isfinite(values)),
                (CleaningCause.NEGATIVE, values < 0),
            ):
                count = int(np.count_nonzero(broken))
                tally.add(file, cause, count)
                n_broken += count
            values[values < 0] = np.nan
            cells = at[good], part.tick[good]
            if len(set(found)) == len(found):
                out[cells] = np.fmax(out[cells], values)
            else:  # two series of one name: the slow way, which sees both
                np.fmax.at(out, cells, values)
    if n_broken > _MOST_BROKEN * n_values:
        raise InputError(
            f"{n_broken:,} of the {n_values:,} values of query {samples.name} are NaN, infinite or negative: correct "
            f"prometheus.queries.{samples.name}, or set it to '' to go without"
        )
    return missing


def forget_invented_zeros(usage: Floats32) -> None:
    """Set to NaN what is exactly 0 where memory, a gauge of the same exporter, has no sample.

    For the first step of a gap VictoriaMetrics says that a counter did not grow, and the half hour would look idle.
    Rows of which memory is never measured stay as they are.

    usage : (n_rows, n_ticks, n_resources), changed
    """
    seen = np.isfinite(usage[:, :, MEMORY])  # (n_rows, n_ticks)
    unseen = ~seen & seen.any(axis=1, keepdims=True)
    usage[unseen[:, :, np.newaxis] & (usage == 0)] = np.nan
