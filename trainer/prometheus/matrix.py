"""Answers of Prometheus as arrays. Millions of samples pass through here, so no Python code runs per sample.

A range query answers [{"metric": {label: value}, "values": [[unix time, "number"], ...]}, ...], an instant query the
same with one "value" (https://prometheus.io/docs/prometheus/latest/querying/api/#expression-query-result-formats).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecast.arrays import Floats, Ints

__all__ = ["Matrix", "matrix_of", "vector_of"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Samples one after the other, series by series.

    labels : (n_series,) label sets
    series : (n_samples,) index into labels
    tick   : (n_samples,) steps since the origin of the grid
    values : (n_samples,) NaN where the sample was NaN or infinite
    """

    labels: tuple[Mapping[str, str], ...]
    series: Ints
    tick: Ints
    values: Floats


def matrix_of(result: Sequence[Mapping[str, Any]], *, origin: int, step_seconds: int) -> Matrix:
    """Result of a range query on the grid origin + tick x step_seconds (unix seconds)."""
    lengths = np.array([len(series["values"]) for series in result], dtype=np.int64)
    ticks = [_ticks(series["values"], origin, step_seconds) for series in result]
    values = _numbers([sample[1] for series in result for sample in series["values"]])
    return _matrix(
        tuple(series["metric"] for series in result),
        np.repeat(np.arange(len(lengths)), lengths),
        np.concatenate(ticks) if ticks else np.empty(0, dtype=np.int64),
        values,
    )


def vector_of(result: Sequence[Mapping[str, Any]]) -> Matrix:
    """Result of an instant query; every sample lies at tick 0."""
    n = len(result)
    values = _numbers([series["value"][1] for series in result])
    return _matrix(tuple(s["metric"] for s in result), np.arange(n), np.zeros(n, dtype=np.int64), values)


def _matrix(labels: tuple[Mapping[str, str], ...], series: Ints, tick: Ints, values: Floats) -> Matrix:
    values[~np.isfinite(values)] = np.nan
    return Matrix(labels, series, tick, values)


def _ticks(samples: Sequence[Sequence[Any]], origin: int, step_seconds: int) -> Ints:
    """Ticks of one series; a series without holes is known from its ends."""
    n = len(samples)
    first, last = round(samples[0][0]), round(samples[-1][0])
    if last - first == (n - 1) * step_seconds:
        run: Ints = np.arange(n, dtype=np.int64) + (first - origin) // step_seconds
        return run
    times = np.fromiter((sample[0] for sample in samples), dtype=np.float64, count=n)
    ticks: Ints = np.rint((times - origin) / step_seconds).astype(np.int64)
    return ticks


def _numbers(texts: list[str]) -> Floats:
    # float() understands NaN, +Inf and -Inf. Measured per sample: this 0.16 us, by way of numpy bytes 0.28 us,
    # pyarrow's cast 0.5 us.
    return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
