"""Reads a history directory into a `History`, or single days of it into a `PodUsage`, in bounded memory.

    open       check the files, list pods and nodes, find the whole local days and the sampling step
    history    window by window: samples -> half-hour slots per pod -> services and nodes (forecast.aggregation)
    pod_usage  the same without the last step

Both number services and nodes alike, however few days are asked for. What was wrong with the data is in `report`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from base.arrays import Floats, Floats32, Ints
from base.errors import InputError, NotEnoughHistory
from base.progress import Progress, silent
from forecast.aggregation import HistoryBuilder, NodeTable, PodTable, PodWindow
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.event_calendar import Event
from forecast.history import History, PodUsage
from forecast.resources import RESOURCES
from forecast.sample_grid import MAX_STEP_SECONDS, SampleGrid, sample_times, slot_last, slot_means, slot_shares
from forecast.usage_limits import CutSeries
from trainer.history.cleaning import CleaningCause, CleaningReport, Tally
from trainer.history.history_layout import Layout, LayoutFile, read_settings
from trainer.history.limit_hits_file import read_limit_hits
from trainer.history.moved_file import MovedServices
from trainer.history.node_and_pod_tables import node_lookup, node_table, pod_table, read_capacity, read_requests
from trainer.history.series_file import ABSENT, QUARTER_SECONDS, Ints32, SampleWindow, SeriesFile, SeriesInventory
from trainer.history.user_lists import read_events

WINDOW_BYTES = 128 << 20
"""Samples held at a time. A window is at least one day: pods of a day x samples of a day x _CELL_BYTES."""

_CELL_BYTES = 4 * len(RESOURCES) + 4
_CAPACITY = tuple(resource.column for resource in RESOURCES)
_DEFAULT_STEP_SECONDS = 300
_FEW_ROWS = 0.02  # of the fullest day's rows


@dataclass(frozen=True, slots=True)
class _Source:
    """A file of samples as the windows need it.

    rank  : (series in the file,) row of the series in our tables, -1 = left out
    place : (places in the file + 1,) row of the node in our tables, -1 = unknown
    """

    file: SeriesFile
    inventory: SeriesInventory
    step_seconds: int
    rank: Ints
    place: Ints


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """An opened history directory. `days` are its whole local days, `pods` and `nodes` everything that occurs in it.

    cut : series that `history` cut, since their nodes cannot have used as much
    """

    directory: Path
    calendar: Calendar
    days: tuple[date, ...]
    pods: PodTable
    nodes: NodeTable
    _usage: _Source = field(repr=False)
    _node_usage: _Source = field(repr=False)
    _tally: Tally = field(repr=False)
    cut: list[CutSeries] = field(default_factory=list, repr=False)
    events: tuple[Event, ...] = ()
    moved: MovedServices | None = None

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        calendar: Calendar | None = None,
        events: Path | None = None,
        moved: Path | None = None,
        until: datetime | None = None,
        progress: Progress = silent,
    ) -> HistoryFiles:
        """Check the directory and take stock of it; raises InputError with one sentence if it is unusable.

        calendar : overrides time zone and holiday country of history.json
        events   : calendar of events; None = events.yaml of the directory, if there is one
        moved    : list of moved services; None = moved.yaml of the directory, if there is one
        until    : days that had not ended by then are cut off, however much of them is there
        """
        directory, tally = Path(directory), Tally()
        key_columns = ("namespace", "service", "pod")
        usage_file = LayoutFile.open(
            directory, Layout.usage, required=("timestamp", *key_columns, "node"), text=(*key_columns, "node")
        )
        node_file = LayoutFile.open(directory, Layout.nodes, required=("timestamp", "node"), text=("node",))
        if not usage_file.columns.intersection(_CAPACITY):
            raise InputError(f"{usage_file.path} has no usage column: write at least one of {', '.join(_CAPACITY)}")
        # Opened before the long part, so that a missing file is reported at once.
        pod_file = LayoutFile.open(directory, Layout.pods, required=("namespace", "pod"), text=("namespace", "pod"))
        capacity_file = LayoutFile.open(directory, Layout.capacity, required=("node",), text=("node",))
        settings = read_settings(directory, tally)
        calendar = calendar or settings.calendar
        events, moved = _named_or_own(directory, events, Layout.events), _named_or_own(directory, moved, Layout.moved)
        of_calendar = () if events is None else read_events(events)
        moved_services = None if moved is None else MovedServices.read(moved)

        usage = SeriesFile(usage_file, key_columns=key_columns, place_column="node", tally=tally)
        node_usage = SeriesFile(node_file, key_columns=("node",), place_column="node", tally=tally)
        usage_stock, node_stock = usage.inventory(progress), node_usage.inventory(progress)
        if not usage_stock.keys:
            raise InputError(f"{usage_file.path} holds no usable row: export the history again")
        step = _step(settings.step_seconds, usage_stock.step_seconds, usage_file.name, tally)
        node_step = _step(None, node_stock.step_seconds or settings.step_seconds, node_file.name, tally)

        days = _whole_days(calendar, usage_stock, step, until, tally)
        seen = {*usage_stock.places, *node_stock.places}
        nodes = node_table(read_capacity(capacity_file, tally), seen, calendar, days, tally)
        pods, rank = pod_table(usage_stock, read_requests(pod_file, tally), nodes, tally)
        return cls(
            directory=directory,
            calendar=calendar,
            days=days,
            pods=pods,
            nodes=nodes,
            _usage=_Source(usage, usage_stock, step, rank, node_lookup(usage_stock.places, nodes)),
            _node_usage=_Source(
                node_usage,
                node_stock,
                node_step,
                node_lookup([name for (name,) in node_stock.keys], nodes)[:-1],
                node_lookup(node_stock.places, nodes),
            ),
            _tally=tally,
            events=of_calendar,
            moved=moved_services,
        )

    @property
    def report(self) -> CleaningReport:
        """What was wrong with the files; counts of values are complete after `history`."""
        return self._tally.report()

    def history(self, *, progress: Progress = silent) -> History:
        """The whole history on the half-hour grid."""
        hits = read_limit_hits(self.directory, self.calendar, self.days, self.pods, self._tally)
        builder = HistoryBuilder(self.calendar, self.days, self.pods, self.nodes, hits)
        for first, n_days in self._node_windows():
            builder.add_nodes(first, self._node_slots(first, n_days, progress))
        for window in self._pod_windows(0, len(self.days), self._tally, progress):
            builder.add_pods(window)
        self.cut[:] = builder.cut
        self._tally.set(Layout.usage, CleaningCause.BEYOND_NODE, sum(series.slots for series in self.cut))
        self._tally.set(Layout.nodes, CleaningCause.BEYOND_FLEET, builder.beyond_fleet)
        history = replace(builder.finish(), events=self.events)
        if self.moved is None:
            return history

        def of_another_cluster(directory: Path) -> History:
            # Where its services came from is of no interest: its own list is not followed.
            files = HistoryFiles.open(directory, calendar=self.calendar, progress=progress)
            return replace(files, moved=None).history(progress=progress)

        return replace(history, earlier=self.moved.earlier_days(history, of_another_cluster))

    def pod_usage(self, first_day: date, last_day: date, *, progress: Progress = silent) -> PodUsage:
        """The pods that existed from first_day to last_day (included), which must lie in `days`."""
        for day in (first_day, last_day):
            if not self.days[0] <= day <= self.days[-1]:
                raise InputError(
                    f"{day} is not in the history, which has {self.days[0]} to {self.days[-1]}: choose days within it"
                )
        begin, n_days = self.days.index(first_day), (last_day - first_day).days + 1
        if n_days < 1:
            raise InputError(f"the range of days ends on {last_day}, before it begins on {first_day}: swap them")
        here = self._pods_during(begin, n_days)
        usage = np.full((len(here), len(RESOURCES), n_days, SLOTS_PER_DAY), np.nan, dtype=np.float32)
        present = np.zeros((len(here), n_days, SLOTS_PER_DAY), dtype=np.float32)
        node = np.full((len(here), n_days, SLOTS_PER_DAY), -1, dtype=np.int32)
        for window in self._pod_windows(begin, n_days, Tally(), progress):
            rows = np.searchsorted(here, window.pod)
            days = slice(window.first_day - begin, window.first_day - begin + window.any_data.shape[0])
            usage[rows, :, days], present[rows, days], node[rows, days] = window.usage, window.present, window.node
        existed = np.flatnonzero((present > 0).any(axis=(1, 2)))
        here = here[existed]
        return PodUsage(
            days=self.days[begin : begin + n_days],
            services=self.pods.services,
            pods=tuple(self.pods.pods[pod] for pod in here.tolist()),
            service=self.pods.service[here],
            requests=self.pods.requests[here],
            usage=usage[existed],
            present=present[existed],
            node=_last_known(node[existed]),
            row=here,
        )

    def _pods_during(self, first: int, n_days: int) -> Ints:
        """Rows of the pod table that have samples between the beginning and the end of some days."""
        stock, rank = self._usage.inventory, self._usage.rank
        begin = self.calendar.midnight(self.days[first]).timestamp() - MAX_STEP_SECONDS
        end = self.calendar.midnight(self.days[first] + timedelta(days=n_days)).timestamp()
        return np.sort(rank[(rank >= 0) & (stock.last >= begin) & (stock.first < end)])

    def _grid(self, source: _Source, first: int, n_days: int) -> SampleGrid:
        return SampleGrid.of_days(
            self.calendar,
            self.days[first],
            n_days,
            step_seconds=source.step_seconds,
            phase_seconds=source.inventory.phase_seconds,
        )

    def _limits(self, first: int, n_days: int) -> Floats:
        """Capacities that samples of some days are held against: (n_days or 1, n_nodes, n_resources)."""
        if self.nodes.daily_capacity is None:
            return self.nodes.capacity[None]
        return np.moveaxis(self.nodes.daily_capacity[:, :, first : first + n_days], 2, 0)

    def _pod_windows(self, first: int, n_days: int, tally: Tally, progress: Progress) -> Iterator[PodWindow]:
        """The days, some at a time, reduced to slots."""
        source = self._usage
        ticks_per_day = -(-86_400 // source.step_seconds)
        begin, end = first, first + n_days
        while begin < end:
            # As many days as fit, at least one.
            length = 1
            while begin + length < end:
                n_cells = len(self._pods_during(begin, length + 1)) * (length + 1) * ticks_per_day
                if n_cells * _CELL_BYTES > WINDOW_BYTES:
                    break
                length += 1
            here = self._pods_during(begin, length)
            grid = self._grid(source, begin, length)
            column = np.full(len(self.pods.pods) + 1, -1, dtype=np.int64)  # one more for rank -1: left out
            column[here] = np.arange(len(here))
            limits = self._limits(begin, length)
            window = SampleWindow(grid, len(here), column[source.rank], source.place, limits)
            samples, places = source.file.samples(window, tally, progress)
            seen = places != ABSENT
            present, any_data = slot_shares(seen, grid)
            yield PodWindow(
                first_day=begin,
                pod=here,
                usage=slot_means(samples, grid),
                present=present,
                node=slot_last(places, grid),
                any_data=any_data,
                times=sample_times(seen, grid),
            )
            begin += length

    def _node_windows(self) -> Iterator[tuple[int, int]]:
        """Runs of days (first, n_days) whose node samples fit into memory."""
        ticks_per_day = -(-86_400 // self._node_usage.step_seconds)
        length = max(1, WINDOW_BYTES // (max(len(self.nodes.nodes), 1) * ticks_per_day * _CELL_BYTES))
        for first in range(0, len(self.days), length):
            yield first, min(length, len(self.days) - first)

    def _node_slots(self, first: int, n_days: int, progress: Progress) -> Floats32:
        """Whole-node usage: (n_nodes, n_resources, n_days, 48)."""
        source, n_nodes = self._node_usage, len(self.nodes.nodes)
        grid = self._grid(source, first, n_days)
        window = SampleWindow(grid, n_nodes, source.rank, source.place, self._limits(first, n_days))
        return slot_means(source.file.samples(window, self._tally, progress)[0], grid)


def _named_or_own(directory: Path, named: Path | None, own: str) -> Path | None:
    """The file that an option names, else the one of the directory, if there is one."""
    if named is None and (directory / own).exists():
        return directory / own
    return named


def read_history(directory: Path | str, *, calendar: Calendar | None = None, progress: Progress = silent) -> History:
    """The whole history of a directory; `HistoryFiles` also gives the report and single pods."""
    return HistoryFiles.open(directory, calendar=calendar, progress=progress).history(progress=progress)


def read_pod_usage(
    directory: Path | str,
    first_day: date,
    last_day: date,
    *,
    calendar: Calendar | None = None,
    progress: Progress = silent,
) -> PodUsage:
    """The pods of a range of days, numbered like `read_history` of the same directory."""
    files = HistoryFiles.open(directory, calendar=calendar, progress=progress)
    return files.pod_usage(first_day, last_day, progress=progress)


def _last_known(node: Ints32) -> Ints:
    """Last entry >= 0 of each pod: (n_pods, n_days, 48) -> (n_pods,), -1 where there is none."""
    flat = node.reshape(len(node), -1)
    last = flat.shape[1] - 1 - (flat[:, ::-1] >= 0).argmax(axis=1)
    found: Ints = flat[np.arange(len(flat)), last].astype(np.int64)
    return found


def _step(declared: int | None, measured: int | None, name: str, tally: Tally) -> int:
    """The sampling step: what the samples say, since a wrong step would silently drop or stretch them."""
    step = measured or declared or _DEFAULT_STEP_SECONDS
    if step > MAX_STEP_SECONDS:
        raise InputError(
            f"the samples in {name} lie {step} s apart, at most {MAX_STEP_SECONDS} s are allowed: export finer ones"
        )
    tally.set(name, CleaningCause.STEP, int(declared is not None and declared != step))
    return step


def _whole_days(
    calendar: Calendar, stock: SeriesInventory, step_seconds: int, until: datetime | None, tally: Tally
) -> tuple[date, ...]:
    """Local days from the first to the last whole one; gaps between them stay.

    Whole means at least half the slots have rows, and there are not hardly any rows: a few pods whose clock is wrong by
    days must not stretch the history by days on which everything else seems to be gone.
    """
    covered = np.flatnonzero(stock.quarter_rows)
    n_rows = stock.quarter_rows[covered]
    # A sample longer than a quarter covers the following ones too.
    n_following = -(-step_seconds // QUARTER_SECONDS)
    quarters = (covered[:, None] + stock.first_quarter + np.arange(n_following)).ravel()
    times = pd.to_datetime(quarters * QUARTER_SECONDS, unit="s", utc=True)
    day, slot = calendar.local_days_and_slots(times)
    first = int(day.min())
    n_slots = np.bincount(np.unique((day - first) * SLOTS_PER_DAY + slot) // SLOTS_PER_DAY)
    rows_of_day = np.bincount(day[::n_following] - first, weights=n_rows, minlength=len(n_slots))
    enough_slots = n_slots >= SLOTS_PER_DAY // 2
    if until is not None:
        ends = [calendar.midnight(date.fromordinal(first + index + 1)) for index in range(len(n_slots))]
        enough_slots &= np.array([end <= until for end in ends])
    if not enough_slots.any():
        raise NotEnoughHistory(days=0, needed=1, purpose="learn anything from it")
    whole = np.flatnonzero(enough_slots & (rows_of_day >= _FEW_ROWS * rows_of_day.max()))
    begin, end = int(whole[0]), int(whole[-1]) + 1
    tally.set(
        Layout.usage,
        CleaningCause.PARTIAL_DAY,
        int(np.count_nonzero(n_slots[:begin]) + np.count_nonzero(n_slots[end:])),
    )
    return tuple(date.fromordinal(first + index) for index in range(begin, end))
