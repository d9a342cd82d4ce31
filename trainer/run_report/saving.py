"""What fewer nodes have saved since a promise: node hours as they ran, against the nodes of before.

    realised = price of the nodes of before - sum over nodes of price * (hours that it ran / hours of the days)

A node counts from its first to its last measured half hour of a day: a gap between them is no node that was away. Days
on which nothing was measured are left out. Prices are those of now on both sides, so that only nodes make a difference.
It counts as saved only if the hot share of these days kept to the target of the promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np

from base.arrays import Bools, Floats
from forecast.calendar import SLOT_MINUTES
from forecast.history import History
from forecast.resources import HOT_RESOURCES
from trainer.promised_saving import PromisedSaving

_SLOT_HOURS: Final = SLOT_MINUTES / 60


NOTHING_PROMISED: Final = "Nothing was promised yet: `forecast-scheduler capacity --promise` keeps what it finds."


@dataclass(frozen=True, slots=True)
class RealisedSaving:
    """What came of a promise.

    days         : whole days since, that were measured; empty = there is none yet
    nodes_since  : mean of these days; NaN = no days
    per_month    : NaN = no days, or nodes without a price; negative = more was spent
    hot_share    : of node half hours of these days
    unpriced     : nodes of these days without a price
    """

    promise: PromisedSaving
    days: tuple[date, ...]
    nodes_since: float
    per_month: float
    hot_share: float
    unpriced: int

    @property
    def counts(self) -> bool:
        """Whether nodes stayed as cool as was promised."""
        return self.hot_share <= self.promise.target

    def to_json(self) -> dict[str, Any]:
        """Under `saving` of the report; NaN = not known."""
        return {
            "promised": {
                "made_at": self.promise.made_at.isoformat(),
                "nodes_before": self.promise.nodes_before,
                "nodes": self.promise.nodes,
                "per_month": self.promise.saved_per_month,
                "target": self.promise.target,
                "sources": dict(self.promise.sources),
            },
            "currency": self.promise.currency,
            "days": len(self.days),
            "first_day": self.days[0].isoformat() if self.days else None,
            "nodes_since": _known(self.nodes_since),
            "realised_per_month": _known(self.per_month),
            "hot_share": _known(self.hot_share),
            "counts": self.counts if self.days else None,
            "nodes_without_price": self.unpriced,
            "is_estimate": True,
        }

    def line(self) -> str:
        """What came of it, in a sentence."""
        promise = self.promise
        said = (
            f"promised on {promise.made_at:%Y-%m-%d}: {promise.nodes_before} -> {promise.nodes} nodes, "
            f"{promise.saved_per_month:,.0f} {promise.currency} a month less"
        )
        if not self.days:
            return f"{said}; no whole day has been measured since"
        since = f"{said}; since then, {len(self.days)} days: {self.nodes_since:.1f} nodes on average"
        hot = f"hot {self.hot_share:.2%} of node half hours, target {promise.target:.2%}"
        if np.isnan(self.per_month):
            return f"{since}, {hot}; no sum is known: nodes of before or of now have no price"
        verdict = "" if self.counts else ": too hot to count as saved"
        return f"{since} = {self.per_month:,.0f} {promise.currency} a month less (estimate; {hot}{verdict})"


def realised_saving(
    history: History, promise: PromisedSaving, per_month: Floats, before_per_month: float, hot: float
) -> RealisedSaving:
    """Hold a promise against the days after it.

    per_month        : (n_nodes,) price of each node of the history; NaN = not known
    before_per_month : of all nodes of before together; NaN = not known
    hot              : share of its capacity above which a node is hot
    """
    first = promise.made_at.astimezone(history.calendar.zone).date()
    measured = np.asarray(np.isfinite(history.node_usage).any(axis=1))  # (n_nodes, n_days, 48)
    rows = [row for row, day in enumerate(history.days) if day > first and measured[:, row].any()]
    there = _bridged(measured[:, rows])  # (n_nodes, n_rows, 48)
    hours = there.sum(axis=2) * _SLOT_HOURS  # (n_nodes, n_rows)
    ran = hours.sum(axis=1)
    priced = np.isfinite(per_month)
    unpriced = int((ran[~priced] > 0).sum())
    window = float(len(rows) * there.shape[2] * _SLOT_HOURS)
    nan = float("nan")
    if not rows:
        return RealisedSaving(promise, (), nan, nan, nan, 0)
    spent = float((ran * np.where(priced, per_month, 0.0)).sum()) / window if not unpriced else nan
    return RealisedSaving(
        promise=promise,
        days=tuple(history.days[row] for row in rows),
        nodes_since=float(ran.sum()) / window,
        per_month=before_per_month - spent,
        hot_share=_hot_share(history, rows, there, hot),
        unpriced=unpriced,
    )


def _bridged(measured: Bools) -> Bools:
    """Of each day, all half hours from the first to the last measured one. (n_nodes, n_rows, 48)"""
    since = np.logical_or.accumulate(measured, axis=2)
    until = np.logical_or.accumulate(measured[:, :, ::-1], axis=2)[:, :, ::-1]
    return since & until


def _hot_share(history: History, rows: list[int], there: Bools, hot: float) -> float:
    """Of the half hours that nodes were there."""
    is_hot = np.zeros(there.shape, dtype=np.bool_)
    for resource in HOT_RESOURCES:
        limit = hot * history.capacity[:, resource, None, None]
        is_hot |= np.nan_to_num(history.node_usage[:, resource][:, rows]) > np.where(np.isfinite(limit), limit, np.inf)
    return float(is_hot.sum() / there.sum())


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
