"""What `report` computes: agreement from the decision log, and with a history the shadow's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from base.progress import Progress
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.history import History
from forecast.resources import RESOURCES
from placement.decisions.comparison import add_moved_usage, agreement_by_level, agreement_of, blank_shift, compare
from placement.decisions.decision import Decision
from placement.decisions.moved_pods import moves_of, span_of
from trainer.history.files import HistoryFiles

_PART_BYTES = 400 << 20
"""Usage of single pods held at a time, a day at least."""


def decisions_json(decisions: Sequence[Decision]) -> dict[str, Any]:
    """Counts over the whole log; at least one decision, in the order of time."""
    first, last = (
        f"{datetime.fromtimestamp(one.time, UTC):%Y-%m-%dT%H:%M:%SZ}" for one in (decisions[0], decisions[-1])
    )
    return {
        "decisions": {
            "first": first,
            "last": last,
            "shadow": sum(one.is_shadow for one in decisions),
            "all": agreement_of(decisions).to_json(),
            "by_level": {level: each.to_json() for level, each in agreement_by_level(decisions).items()},
        }
    }


def adoption_day(decisions: Sequence[Decision], calendar: Calendar) -> date | None:
    """Return the local day of the first decision that kube-scheduler received; None if all are of a shadow."""
    told = (one.time for one in decisions if not one.is_shadow)
    first = next(told, None)
    return None if first is None else calendar.day_and_slot(datetime.fromtimestamp(first, UTC))[0]


def shadow_comparison(
    files: HistoryFiles,
    history: History,
    decisions: Sequence[Decision],
    days: int | None,
    hot: float,
    progress: Progress,
) -> dict[str, Any]:
    """Figures of the nodes as measured, and with the pods where the decisions would have had them.

    decisions : in the order of time, at least one
    days      : only the last days of the history
    hot       : share of its capacity above which a node is hot
    """
    span = span_of(history, decisions, days)
    moves = moves_of(history, files.pods.pods, decisions, span)
    shift = blank_shift(history, span)
    day_bytes = max(len(files.pods.pods), 1) * len(RESOURCES) * SLOTS_PER_DAY * shift.itemsize
    part = max(_PART_BYTES // day_bytes, 1)
    span_days = history.days[span.first : span.first + span.n_days]
    for begin in range(0, span.n_days if len(moves.pod) else 0, part):
        some = span_days[begin : begin + part]
        add_moved_usage(shift, moves, files.pod_usage(some[0], some[-1], progress=progress), history, span)
    return compare(history, span, moves, shift, hot).to_json()
