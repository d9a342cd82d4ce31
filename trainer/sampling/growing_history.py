"""Closed cells into our own history: at once into the journal of their day, every half hour into its tables.

    closed cell ──> recording/2026-11-30.cells ──half hours──> usage/2026-11-30.parquet, ...
                          (fsync)                              the journal goes when its day is over

A full disk loses nothing while the process lives: what could not be written is tried again with the next cell.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np

from base.errors import ForecastError, StoreError
from forecast.calendar import Calendar
from trainer.own_history_store import SETTLE, OwnHistory
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.sampling.cells import CELL_SECONDS, PodOnNode, Usage
from trainer.sampling.journal import (
    Cell,
    Journal,
    NodeRecord,
    PodRecord,
    Record,
    days_of_journals,
    packed,
    packed_numbers,
)
from trainer.sampling.recorded_day import RecordedDay

logger = logging.getLogger(__name__)

_NOTHING = Usage(math.nan, math.nan)


class _OpenDay:
    """The day that is recorded: what is known of it, its journal, and which of it is not on the disk yet."""

    def __init__(self, history: Path, day: date) -> None:
        self.recorded, self.journal = RecordedDay(day), Journal(history, day)
        self.unwritten: list[Record] = []
        for record in self.journal.open():
            self.recorded.add(record)
        self._number = {pod.uid: number for number, pod in self.recorded.pods.items()}
        self._nodes: dict[str, NodeRecord] = {}

    def add(self, records: Sequence[Record]) -> None:
        """Take them in, and write them."""
        for record in records:
            self.recorded.add(record)
        self.unwritten += records
        self.write()

    def write(self) -> None:
        """Write what is not on the disk yet."""
        if not self.unwritten:
            return
        try:
            self.journal.append(self.unwritten)
        except StoreError as error:
            logger.warning(
                "cells are kept in memory and written with the next",
                extra={"cells": self.n_unwritten, "error": str(error)},
            )
        else:
            self.unwritten.clear()

    @property
    def n_unwritten(self) -> int:
        return sum(isinstance(record, Cell) for record in self.unwritten)

    def new_nodes(self, nodes: Sequence[NodeRecord]) -> list[NodeRecord]:
        """Those that are new today or have changed."""
        new = [node for node in nodes if self._nodes.get(node.name) != node]
        self._nodes.update({node.name: node for node in new})
        return new

    def numbered(self, pods: Sequence[PodRecord]) -> tuple[list[int], list[PodRecord]]:
        """The number of each, and those that are new today or have changed. pods: with any numbers"""
        numbers, new = [], []
        for pod in pods:
            number = self._number.setdefault(pod.uid, len(self._number))
            known = msgspec.structs.replace(pod, number=number)
            numbers.append(number)
            if self.recorded.pods.get(number) != known:
                new.append(known)
        return numbers, new


class GrowingHistory:
    """Of one history directory, whose lease the caller holds. Raises StoreError where the directory is no good."""

    def __init__(self, history: Path, options: SourceOptions, calendar: Calendar, *, keep_days: int) -> None:
        """calendar: written into history.json on the first run. keep_days: older days are deleted"""
        self._history, self._options, self._keep_days = history, options, keep_days
        self._own = OwnHistory(str(history))
        self._own.check_growable()
        self._own.begin(calendar, CELL_SECONDS, None)
        self._open: _OpenDay | None = None

    def resume(self, now: datetime) -> None:
        """Take up the journals that an earlier run has left; days that are over go into the history."""
        self._own.remove_leftovers(now)
        self._own.set_damaged_aside()
        for day in days_of_journals(self._history):
            if day < now.astimezone(UTC).date():
                self._end(_OpenDay(self._history, day), now)
            elif day == now.astimezone(UTC).date():
                self._open = _OpenDay(self._history, day)

    def add(
        self,
        start: int,
        pods: Sequence[PodRecord],
        nodes: Sequence[NodeRecord],
        usage: Mapping[PodOnNode, Usage],
        node_usage: Mapping[str, Usage],
    ) -> None:
        """A cell that is over. pods: that ran at its end; usage: of pods by (namespace, name, node), and of nodes"""
        opened = self._day_of(start)
        numbers, new_pods = opened.numbered(pods)
        of_pods = [usage.get((pod.namespace, pod.name, pod.node), _NOTHING) for pod in pods]
        cell = Cell(
            start, packed_numbers(numbers), _packed(of_pods), list(node_usage), _packed(list(node_usage.values()))
        )
        opened.add([*opened.new_nodes(nodes), *new_pods, cell])

    def store(self, now: datetime) -> datetime | None:
        """Bring the day so far into the history; returns up to when it is there, None = nothing new could be stored."""
        if self._open is None:
            return None
        self._open.write()
        return self._into_history(self._open, self._open.recorded.read_until)

    @property
    def n_days(self) -> int:
        """How many days the history has, the one that is recorded included."""
        return len(self._own.read_days())

    def _day_of(self, start: int) -> _OpenDay:
        day = datetime.fromtimestamp(start, UTC).date()
        if self._open is None or self._open.recorded.day != day:
            if self._open is not None:
                self._end(self._open, datetime.fromtimestamp(start, UTC))
            self._open = _OpenDay(self._history, day)
        return self._open

    def _end(self, opened: _OpenDay, now: datetime) -> None:
        """Its journal goes once the day is in the history; else the next run tries again."""
        if self._into_history(opened, opened.recorded.read_until + SETTLE) is not None:
            opened.journal.remove()
            self._own.forget_before(now.astimezone(UTC).date() - timedelta(days=self._keep_days))

    def _into_history(self, opened: _OpenDay, read_until: datetime) -> datetime | None:
        recorded = opened.recorded
        if not recorded.cells:
            return recorded.read_until
        try:
            self._own.append(recorded.tables(self._options), read_until=read_until)
        except ForecastError as error:  # a full disk passes; what contradicts itself may do so in the morning only
            logger.warning("the day is not in the history yet", extra={"day": str(recorded.day), "error": str(error)})
            return None
        return recorded.read_until


def _packed(usage: Sequence[Usage]) -> bytes:
    return packed(np.array([(one.cores, one.memory) for one in usage], dtype=np.float64))
