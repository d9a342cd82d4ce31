"""Advice against reality: how often pods went where they were advised to go, and what the nodes would have used with
every pod where we would have it.

The measured usage of a pod is moved from the node it ran on to the node advised, from the binding on. Everything else
stays as it was measured: pods that are not in the log, usage that was not measured per pod, pods that ran where we
would have had them, and pods whose advice was late (kube-scheduler would have been given neutral scores).

A shadow believes its own advice (Extender._believe), so that later advice reckons with it; a restart forgets. Where
`most_on_one_node` is far more than a node usually holds, the log spans restarts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32
from base.errors import InputError
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History, PodUsage
from forecast.resources import CPU
from placement.decisions.decision import Decision
from placement.decisions.moved_pods import ComparedDays, Moves, PodFate, playing_nodes
from scorer.replay.replay_figures import RuleFigures, figures_of, shares

_BRIDGED_SLOTS = 2
"""Gaps of up to an hour take the value before them: a missed scrape, or the hour that does not exist in spring."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures of the days, as measured and with the pods moved.

    moved_cpu_share  : of all CPU used on the nodes, what was moved; small = the figures can hardly differ
    most_on_one_node : pods that were moved to the node with the most of them
    measured_share   : of node half hours
    """

    days: tuple[date, ...]
    n_nodes: int
    real: RuleFigures
    shadow: RuleFigures
    fates: Mapping[PodFate, int]
    moved_cpu_share: float
    most_on_one_node: int
    measured_share: float

    def to_json(self) -> dict[str, Any]:
        return {
            "days": [self.days[0].isoformat(), self.days[-1].isoformat()],
            "n_days": len(self.days),
            "nodes": self.n_nodes,
            "real": _figures(self.real),
            "shadow": _figures(self.shadow),
            "pods": {fate.value: self.fates.get(fate, 0) for fate in PodFate},
            "moved_cpu_share": self.moved_cpu_share,
            "most_on_one_node": self.most_on_one_node,
            "measured_share": self.measured_share,
        }


def blank_shift(history: History, span: ComparedDays) -> Floats32:
    """What nodes gain by the moves, before there are any: (n_nodes, n_resources, n_slots of the span)."""
    return np.zeros((*history.node_usage.shape[:2], span.n_days * SLOTS_PER_DAY), dtype=np.float32)


def add_moved_usage(shift: Floats32, moves: Moves, pod_usage: PodUsage, history: History, span: ComparedDays) -> None:
    """Add what is moved on some days of the span to `shift`; to be called for one part of it after the other."""
    row_of = {name: row for row, name in enumerate(pod_usage.pods)}
    row = np.array([row_of.get(name, -1) for name in moves.pod], dtype=np.int64)
    begin = history.days.index(pod_usage.days[0]) * SLOTS_PER_DAY
    n_slots = len(pod_usage.days) * SLOTS_PER_DAY
    here = np.flatnonzero((row >= 0) & (moves.first < begin + n_slots) & (moves.end > begin))
    if not len(here):
        return
    at = np.arange(begin, begin + n_slots)
    there = (at >= moves.first[here, None]) & (at < moves.end[here, None])  # (n_here, n_slots)
    weight = there * pod_usage.present[row[here]].reshape(len(here), n_slots)
    # What was not measured cannot be moved.
    usage = np.nan_to_num(pod_usage.usage[row[here]].reshape(len(here), -1, n_slots)) * weight[:, None]
    part = shift[:, :, begin - span.first_slot : begin - span.first_slot + n_slots]
    np.subtract.at(part, moves.source[here], usage)
    np.add.at(part, moves.target[here], usage)


def compare(history: History, span: ComparedDays, moves: Moves, shift: AnyFloats, hot: float) -> Comparison:
    """The figures of both. shift: as `add_moved_usage` made it, of the whole span. Raises InputError."""
    nodes = playing_nodes(history, span)
    days = slice(span.first, span.first + span.n_days)
    if not len(nodes):
        raise InputError(
            f"no node that was measured from {history.days[span.first]} on has a known capacity of CPU, disk, network "
            "or log, so no node can be hot: choose other days, or fill in capacity.parquet"
        )
    measured = history.node_usage[nodes][:, :, days].reshape(len(nodes), -1, span.n_days * SLOTS_PER_DAY)
    real = _bridged(measured)
    shadow = np.maximum(real + shift[nodes], 0.0)
    capacity = history.capacity_of_days[nodes][:, :, days]
    targets = Counter(target for _, target in set(zip(moves.pod, moves.target.tolist(), strict=True)))
    used = np.nansum(real[:, CPU])
    return Comparison(
        days=history.days[days],
        n_nodes=len(nodes),
        real=figures_of(_shares_by_day(real, capacity), 0, {}, hot),
        shadow=figures_of(_shares_by_day(shadow, capacity), 0, {}, hot),
        fates=moves.fates,
        moved_cpu_share=float(np.maximum(shift[nodes, CPU], 0.0).sum() / used) if used > 0 else 0.0,
        most_on_one_node=max(targets.values(), default=0),
        measured_share=float(np.isfinite(measured).any(axis=1).mean()),
    )


def _shares_by_day(load: Floats, capacity: Floats) -> Floats:
    """(n_nodes, n_resources, n_days * 48) as share of what the node had on each day, (n_nodes, n_resources, n_days)."""
    return shares(load.reshape(*capacity.shape, SLOTS_PER_DAY), capacity).reshape(load.shape)


def _bridged(usage: AnyFloats) -> Floats:
    """Short gaps in (n_nodes, n_resources, n_slots) filled with what was before them."""
    filled = usage.astype(np.float64)
    for _ in range(_BRIDGED_SLOTS):
        gap = np.isnan(filled[..., 1:]) & np.isfinite(filled[..., :-1])
        filled[..., 1:] = np.where(gap, filled[..., :-1], filled[..., 1:])
    return filled


def _figures(figures: RuleFigures) -> dict[str, Any]:
    """Without what a placement rule has and a measurement has not."""
    return {name: value for name, value in figures.to_json().items() if name != "unplaced"}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of some decisions.

    decisions  : how many
    as_advised : went to the very node
    as_good    : went to that or to another with as many points
    late       : answered after the deadline: kube-scheduler was given neutral scores
    """

    decisions: int
    as_advised: int
    as_good: int
    late: int

    @property
    def share(self) -> float:
        """as_good of all; NaN without decisions."""
        return self.as_good / self.decisions if self.decisions else float("nan")

    def to_json(self) -> dict[str, Any]:
        return {
            "decisions": self.decisions,
            "as_advised": self.as_advised,
            "as_good": self.as_good,
            "agreement": self.share,
            "late": self.late,
        }


def agreement_of(decisions: Iterable[Decision]) -> Agreement:
    """Over all of them."""
    n_decisions = as_advised = as_good = late = 0
    for decision in decisions:
        n_decisions += 1
        as_advised += decision.node == decision.advised_node
        as_good += decision.agrees
        late += decision.is_late
    return Agreement(n_decisions, as_advised, as_good, late)


def agreement_by_level(decisions: Iterable[Decision]) -> dict[str, Agreement]:
    """For each rung that occurs, by name in the order of the alphabet."""
    groups: dict[str, list[Decision]] = {}
    for decision in decisions:
        groups.setdefault(decision.level or "unknown", []).append(decision)
    return {level: agreement_of(groups[level]) for level in sorted(groups)}
