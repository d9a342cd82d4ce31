"""Which pods a shadow moves, from where, to where and for how long; and why the others stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import numpy as np

from base.arrays import Ints
from base.errors import InputError
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.resources import HOT_RESOURCES
from placement.decisions.decision import Decision


class PodFate(Enum):
    """What became of a pod in the comparison; all but the first stayed where they were.

    agrees    : it went where we would have it, or to a node that we rated as high
    late      : kube-scheduler would have been given neutral scores
    not_found : the history of these days does not know the pod
    elsewhere : the history saw it on another node than the log
    no_node   : a node of the two is not measured, or of unknown capacity
    """

    MOVED = "moved"
    AGREES = "agrees"
    LATE = "late"
    NO_ADVICE = "no_advice"
    NOT_FOUND = "not_found"
    ELSEWHERE = "elsewhere"
    NO_NODE = "no_node"


@dataclass(frozen=True, slots=True)
class ComparedDays:
    """Whole local days that are compared: `first` and `n_days` index the history's days."""

    first: int
    n_days: int

    @property
    def first_slot(self) -> int:
        return self.first * SLOTS_PER_DAY

    @property
    def end_slot(self) -> int:
        return (self.first + self.n_days) * SLOTS_PER_DAY


@dataclass(frozen=True, slots=True)
class Moves:
    """Stays of pods that are moved, one row for each run of a pod on its node.

    pod            : (n_moves,) names
    source, target : (n_moves,) index of the history's node it ran on, and of the one advised
    first, end     : (n_moves,) slots of the history, end exclusive
    fates          : how many decisions came to which end
    """

    pod: tuple[str, ...]
    source: Ints
    target: Ints
    first: Ints
    end: Ints
    fates: Mapping[PodFate, int]


def span_of(history: History, decisions: Sequence[Decision], days: int | None = None) -> ComparedDays:
    """From the day of the first decision to the end of the history, at most its last `days`. Raises InputError."""
    zone = history.calendar.zone
    first, last = (
        datetime.fromtimestamp(one.time, UTC).astimezone(zone).date() for one in (decisions[0], decisions[-1])
    )
    if first > history.days[-1]:
        raise InputError(
            f"the decisions were made from {first} to {last}, the history has the days {history.days[0]} to "
            f"{history.days[-1]}: wait for the next nightly run, or name the history of that time"
        )
    begin = max((first - history.days[0]).days, 0)
    if last < history.days[0]:
        raise InputError(
            f"the decisions were made from {first} to {last}, before the first day of the history, {history.days[0]}: "
            "name the history of that time"
        )
    if days is not None:
        begin = max(begin, history.n_days - days)
    return ComparedDays(begin, history.n_days - begin)


def moves_of(history: History, pods: Sequence[str], decisions: Sequence[Decision], span: ComparedDays) -> Moves:
    """Which stays are moved where.

    pods      : names that `history.placements.pod` counts, "namespace/name"
    decisions : in the order of time; those before the span count too, their pods may still be there
    A name can come back, as those of a StatefulSet do: a decision holds until the next one about the same name.
    """
    node_of = {name: index for index, name in enumerate(history.nodes)}
    known = set(playing_nodes(history, span).tolist())
    runs = _Runs(history, {decision.pod for decision in decisions}, pods)
    until: dict[str, int] = {}
    fates = dict.fromkeys(PodFate, 0)
    rows: list[tuple[str, int, int, int, int]] = []
    for decision in reversed(decisions):
        begin = _slot(history, decision.time)
        end = min(until.get(decision.pod, span.end_slot), span.end_slot)
        until[decision.pod] = begin
        if begin >= span.end_slot:
            continue
        source, target = node_of.get(decision.node, -1), node_of.get(decision.advised_node or "", -1)
        stays = runs.during(decision.pod, max(begin, span.first_slot), end)
        if not stays and begin < span.first_slot:
            continue  # gone before these days
        fate = _fate(decision, source in known and target in known, [node for node, _, _ in stays], source)
        fates[fate] += 1
        if fate is PodFate.MOVED:
            rows += [(decision.pod, source, target, since, stop) for node, since, stop in stays if node == source]
    source_of, target_of, first, end_of = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 4).T
    return Moves(tuple(row[0] for row in rows), source_of, target_of, first, end_of, fates)


def playing_nodes(history: History, span: ComparedDays) -> Ints:
    """Nodes measured in the span that have a capacity of something that can make them hot: (n_playing,) indices."""
    measured = np.isfinite(history.node_usage[:, :, span.first : span.first + span.n_days]).any(axis=(2, 3))
    capacity = history.capacity_of_days[:, :, span.first : span.first + span.n_days]
    limited = np.any(np.isfinite(capacity) & (capacity > 0), axis=2)
    hot = list(HOT_RESOURCES)
    return np.flatnonzero((measured & limited)[:, hot].any(axis=1))


def _fate(decision: Decision, nodes_known: bool, seen_on: Sequence[int], source: int) -> PodFate:
    if decision.is_late:
        return PodFate.LATE
    if decision.advised_node is None:
        return PodFate.NO_ADVICE
    if decision.agrees:
        return PodFate.AGREES
    if not seen_on:
        return PodFate.NOT_FOUND
    if not nodes_known:
        return PodFate.NO_NODE
    return PodFate.MOVED if source in seen_on else PodFate.ELSEWHERE


class _Runs:
    """Where the history saw some pods, by name."""

    def __init__(self, history: History, wanted: set[str], pods: Sequence[str]) -> None:
        """pods: names that placements count."""
        self._runs: dict[str, list[tuple[int, int, int]]] = {}
        rows = {row for row, name in enumerate(pods) if name in wanted}
        placements = history.placements
        chosen = np.flatnonzero(np.isin(placements.pod, list(rows)))
        columns = (placements.pod, placements.node, placements.first, placements.end)
        for pod, node, first, end in np.stack([column[chosen] for column in columns], axis=1).tolist():
            self._runs.setdefault(pods[pod], []).append((node, first, end))

    def during(self, pod: str, begin: int, end: int) -> list[tuple[int, int, int]]:
        """Node, first slot and end of the stays that overlap begin..end, cut to it."""
        stays = []
        for node, first, stop in self._runs.get(pod, ()):
            if first == begin + 1:
                first = begin  # bound in the second half of a slot, of which the history then counts no stay
            if first < end and stop > begin:
                stays.append((node, max(first, begin), min(stop, end)))
        return stays


def _slot(history: History, at: float) -> int:
    """Slot of the history, counted from its first midnight; negative before it."""
    day, slot = history.calendar.day_and_slot(datetime.fromtimestamp(at, UTC))
    return (day - history.days[0]).days * SLOTS_PER_DAY + slot
