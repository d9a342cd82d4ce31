"""Quantiles over the days of many series at once, and how wrong a quantile forecast is: lower is better for every
`*_loss`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats, Ints


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows in ascending order, missing values last.

    values : (n_rows, n_columns) sorted; missing ones replaced by the row's largest value (0 in an empty row)
    order  : (n_rows, n_columns) column that each sorted value came from
    known  : (n_rows, n_columns) 1.0 for a measured value, 0.0 for a missing one, in sorted order
    """

    values: Floats
    order: Ints
    known: Floats

    def quantiles(self, weights: Floats, quantiles: tuple[float, ...]) -> Floats:
        """Weighted quantiles, interpolated between the midpoints of the weights (Hazen's rule when all are equal).

        weights : (n_columns,) or (n_rows, n_columns), >= 0, by original column
        Returns (n_rows, n_quantiles); 0 where a row holds nothing with a weight.
        """
        per_row = weights[self.order] if weights.ndim == 1 else np.take_along_axis(weights, self.order, axis=1)
        mass = per_row * self.known  # (n_rows, n_columns)
        cumulated = np.cumsum(mass, axis=1)
        total = cumulated[:, -1:]
        position = (cumulated - mass / 2) / np.where(total > 0, total, 1.0)
        if (weights > 0).all():
            return np.where(total > 0, self._between(position, quantiles), 0.0)
        result = np.empty((len(self.values), len(quantiles)))
        rows = np.arange(len(self.values))
        last = self.values.shape[1] - 1
        # Values of weight 0 share their neighbour's position: search for the neighbours among those that count.
        counts = mass > 0
        for index, quantile in enumerate(quantiles):
            from_here = position >= quantile
            is_above, is_below = from_here & counts, counts & ~from_here
            # Positions ascend: the nearest above is the first, the nearest below the last.
            above, below = is_above.argmax(axis=1), last - is_below[:, ::-1].argmax(axis=1)
            has_above, has_below = is_above[rows, above], is_below[rows, below]
            above, below = np.where(has_above, above, below), np.where(has_below, below, above)
            low, high = position[rows, below], position[rows, above]
            gap = high - low
            share = np.where(gap > 0, (quantile - low) / np.where(gap > 0, gap, 1.0), 0.0)
            value = self.values[rows, below] * (1 - share) + self.values[rows, above] * share
            result[:, index] = np.where(total[:, 0] > 0, value, 0.0)
        return result

    def _between(self, position: Floats, quantiles: tuple[float, ...]) -> Floats:
        """`quantiles` where every column has a weight: positions ascend, and a missing value equals the largest."""
        rows = np.arange(len(self.values))
        last = self.values.shape[1] - 1
        result = np.empty((len(self.values), len(quantiles)))
        for index, quantile in enumerate(quantiles):
            n_below = (position < quantile).sum(axis=1)
            below, above = np.maximum(n_below - 1, 0), np.minimum(n_below, last)
            low, high = position[rows, below], position[rows, above]
            gap = high - low
            share = np.where(gap > 0, (quantile - low) / np.where(gap > 0, gap, 1.0), 0.0)
            result[:, index] = self.values[rows, below] * (1 - share) + self.values[rows, above] * share
        return result


def sort_rows(values: Floats) -> SortedRows:
    """values: (n_rows, n_columns), NaN where missing."""
    known = np.isfinite(values)
    order = np.argsort(np.where(known, values, np.inf), axis=1, kind="stable")
    in_order = np.take_along_axis(values, order, axis=1)
    count = known.sum(axis=1)
    largest = np.where(count > 0, in_order[np.arange(len(values)), np.maximum(count - 1, 0)], 0.0)
    known_in_order = np.take_along_axis(known, order, axis=1)
    return SortedRows(np.where(known_in_order, in_order, largest[:, None]), order, known_in_order.astype(np.float64))


def nan_quantile(values: AnyFloats, quantile: float) -> Floats:
    """Quantile along the last axis by linear interpolation, as `np.nanquantile`; NaN where nothing is known.

    values : (..., n), NaN where missing
    """
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    ascending = np.sort(values, axis=-1)  # NaN last
    count = np.isfinite(ascending).sum(axis=-1)
    rank = quantile * np.maximum(count - 1, 0)
    low = np.floor(rank).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))
    at_low = np.take_along_axis(ascending, low[..., None], axis=-1)[..., 0].astype(np.float64)
    at_high = np.take_along_axis(ascending, high[..., None], axis=-1)[..., 0].astype(np.float64)
    return np.asarray(at_low + (rank - low) * (at_high - at_low), dtype=np.float64)


def pinball_loss(actual: Floats, forecast: Floats, quantile: float) -> Floats:
    """Loss whose expectation the true quantile minimises, elementwise and without the factor 2 some authors use.

        loss = max(q (y - f), (q - 1) (y - f))

    Koenker & Bassett 1978, "Regression Quantiles", Econometrica 46, eq. 3.1. NaN stays NaN.

    actual, forecast : any shapes that broadcast, same unit
    quantile         : in (0, 1)
    """
    miss = actual - forecast
    return np.asarray(np.maximum(quantile * miss, (quantile - 1.0) * miss), dtype=np.float64)


def coverage(actual: Floats, forecast: Floats) -> float:
    """Share of the actual values at or below the forecast, over pairs where both are known; NaN without a pair."""
    known = np.isfinite(actual) & np.isfinite(forecast)
    return float((actual[known] <= forecast[known]).mean()) if known.any() else float("nan")
