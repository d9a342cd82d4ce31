"""Answers of Prometheus as arrays. Millions of samples pass through here, so no Python code runs per sample.

A range query answers [{"metric": {label: value}, "values": [[unix time, "number"], ...]}, ...], an instant query the
same with one "value" (https://prometheus.io/docs/prometheus/latest/querying/api/#expression-query-result-formats).
An answer that holds anything else is refused as a whole: who says one impossible thing is no Prometheus. The text of
ImpossibleAnswer completes "the server answers with ...".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import itemgetter
from sys import intern
from typing import Any

import numpy as np

from base.arrays import Floats, Ints
from trainer.prometheus.http_answer import ImpossibleAnswer

Series = Mapping[str, Any]
"""One element of a result: metric and values (range query) or value (instant query)."""

_LATEST = 253_402_300_799
"""Unix seconds of the last day that datetime knows."""
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Matrix:
    """Samples one after the other, series by series.

    labels : (n_series,) label sets
    series : (n_samples,) index into labels
    tick   : (n_samples,) steps since the start of the range; 0 in an answer to an instant query
    values : (n_samples,) NaN where the sample was NaN or infinite
    """

    labels: tuple[Mapping[str, str], ...]
    series: Ints
    tick: Ints
    values: Floats


def matrix_of(result: Sequence[Series], *, start: int, end: int, step_seconds: int) -> Matrix:
    """Result of a range query (unix seconds, both ends included). Raises ImpossibleAnswer.

    VictoriaMetrics may move both ends by less than a step; samples farther away were not asked for.
    """
    lengths, times, values = _decoded(result, "values")
    outside = (times < start - step_seconds) | (times > end + step_seconds)
    if outside.any():
        first = times[np.argmax(outside)]
        raise ImpossibleAnswer(f"a sample at the unix time {first:.15g}, asked was for {start} to {end}")
    series = np.repeat(np.arange(len(lengths)), lengths)
    if ((np.diff(times) <= 0) & (np.diff(series) == 0)).any():
        raise ImpossibleAnswer("samples of one series that are not in the order of time")
    return _matrix(result, series, np.rint((times - start) / step_seconds).astype(np.int64), values)


def vector_of(result: Sequence[Series]) -> Matrix:
    """Result of an instant query; every sample lies at tick 0. Raises ImpossibleAnswer."""
    lengths, _, values = _decoded(result, "value")
    return _matrix(result, np.arange(len(lengths)), np.zeros(len(lengths), dtype=np.int64), values)


def joined(parts: Sequence[Matrix]) -> Matrix:
    """Matrices of different series as one."""
    if len(parts) == 1:
        return parts[0]
    ends = accumulate(len(part.labels) for part in parts)
    series = [part.series + (end - len(part.labels)) for part, end in zip(parts, ends, strict=True)]
    return Matrix(
        tuple(chain.from_iterable(part.labels for part in parts)),
        np.concatenate([np.zeros(0, np.int64), *series]),
        np.concatenate([np.zeros(0, np.int64), *(part.tick for part in parts)]),
        np.concatenate([np.zeros(0), *(part.values for part in parts)]),
    )


def _matrix(result: Sequence[Series], series: Ints, tick: Ints, values: Floats) -> Matrix:
    values[~np.isfinite(values)] = np.nan
    # The same names come in every answer: kept once, they are a small part of what is kept.
    labels = tuple({label: intern(value) for label, value in one["metric"].items()} for one in result)
    return Matrix(labels, series, tick, values)


def _decoded(result: Sequence[Series], key: str) -> tuple[Ints, Floats, Floats]:
    """(n_series,) numbers of samples; (n_samples,) times and values. Raises ImpossibleAnswer."""
    try:
        of_series = [one[key] if key == "values" else [one[key]] for one in result]
        flat = list(chain.from_iterable(chain.from_iterable(of_series)))  # time, text, time, text ...
        times, texts = np.array(flat[::2]), flat[1::2]
        "".join(texts)  # raises TypeError unless all are texts, in a third of the time of looking at each type
        # float() understands NaN, +Inf and -Inf. Measured per sample: this 0.08 us, by way of numpy bytes 0.28 us,
        # pyarrow's cast 0.5 us.
        values = np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
        good = (
            set(map(type, of_series)) <= {list}
            and len(times) == len(texts) == sum(map(len, of_series))
            and (times.dtype.kind in "iuf" or not len(times))
            and all(map(_are_labels, map(itemgetter("metric"), result)))
        )
    except (TypeError, ValueError, LookupError):
        good = False
    if not good:
        raise ImpossibleAnswer(next(_problems(result, key)))
    at: Floats = times.astype(np.float64)
    if at.size and (at.min() < 0 or at.max() > _LATEST):
        raise ImpossibleAnswer(f"a sample at the unix time {at[np.argmax((at < 0) | (at > _LATEST))]:.15g}")
    return np.array(list(map(len, of_series)), dtype=np.int64), at, values


def _are_labels(labels: Any) -> bool:
    return type(labels) is dict and set(map(type, labels.values())) <= {str}


def _problems(result: Sequence[Any], key: str) -> Iterator[str]:
    """What is wrong, in words; slow, and only asked for when something is."""
    for series in result:
        if not isinstance(series, dict):
            yield f"{_shown(series)} in the place of a series"
        elif not _are_labels(series.get("metric")):
            yield f"labels {_shown(series.get('metric'))}, allowed are names with texts"
        elif key not in series:
            yield f"a series without {key} (it has {_shown(sorted(series))})"
        elif key == "values" and not isinstance(series[key], list):
            yield f"values {_shown(series[key])}, allowed is a list of samples"
        else:
            samples = series[key] if key == "values" else [series[key]]
            yield from (
                f"the sample {_shown(sample)} of the series {_shown(series['metric'])}, allowed is "
                '[unix time, "number"]'
                for sample in samples
                if not _is_sample(sample)
            )
    yield "what is no list of series"


def _is_sample(sample: Any) -> bool:
    if type(sample) is not list or len(sample) != 2 or type(sample[0]) not in (int, float):
        return False
    try:
        return type(sample[1]) is str and isinstance(float(sample[1]), float)
    except ValueError:
        return False


def _shown(found: Any) -> str:
    text = "null" if found is None else " ".join(str(found).split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
