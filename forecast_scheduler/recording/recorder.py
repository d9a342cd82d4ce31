"""The loop that records: reads all nodes every 30 or 60 s, closes cells of five minutes, stores every half hour."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from base.errors import InputError
from forecast.calendar import Calendar
from forecast.service_key import Owner
from forecast_scheduler.recording.kubelets import UsageWay
from forecast_scheduler.recording.listed_pods import ListedPods, OwnedPod
from kube.objects.objects import NodeInfo
from trainer.sampling.cells import CELL_SECONDS, OpenCells
from trainer.sampling.growing_history import GrowingHistory
from trainer.sampling.journal import NodeRecord, PodRecord
from trainer.sampling.readings import NodeReading

logger = logging.getLogger(__name__)

MOST_NODES: Final = 200
"""One request a node and minute through the API server: 3.4 a second. Beyond it a metrics store is the better way."""

_FEW_NODES: Final = 100
_QUICK_SECONDS, _SLOW_SECONDS = 30.0, 60.0

_MEASURED_LATE_SECONDS: Final = 20.0
"""A kubelet measures a container every 10 to 15 s: what it says may be so old."""

_STORE_SECONDS: Final = 1800
"""A slot of the forecast."""

_HALF_A_DAY: Final = timedelta(hours=24) / 2


def seconds_between(n_nodes: int) -> float:
    """How often each node is read."""
    return _QUICK_SECONDS if n_nodes <= _FEW_NODES else _SLOW_SECONDS


def check_size(n_nodes: int) -> None:
    """Raise InputError for more nodes than may be read through the API server."""
    if n_nodes > MOST_NODES:
        raise InputError(
            f"the cluster has {n_nodes:,} nodes, and at most {MOST_NODES} are recorded through the API server: install "
            "Prometheus, and leave --record out (docs/operate/prometheus.md)"
        )


def first_forecast(since: datetime, calendar: Calendar) -> datetime:
    """When the first forecast is possible: a local day must be over, of which half is recorded."""
    day = since.astimezone(calendar.zone).date()
    midnight = calendar.midnight(day + timedelta(days=1))
    whole = midnight - since >= _HALF_A_DAY
    return midnight if whole else calendar.midnight(day + timedelta(days=2))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of half an hour.

    until           : what is in the history; None = it could not be stored
    answered, asked : readings
    why_not         : the most frequent reason for those that failed; '' = none failed
    """

    until: datetime | None
    n_days: int
    n_pods: int
    n_nodes: int
    answered: int
    asked: int
    why_not: str


class Recorder:
    """Runs until `ended` is set. report: called after every half hour. clock: unix seconds"""

    def __init__(
        self,
        way: UsageWay,
        listed: ListedPods,
        recording: GrowingHistory,
        *,
        ended: threading.Event,
        report: Callable[[Recorded], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._way, self._listed, self._recording = way, listed, recording
        self._ended, self._report, self._clock = ended, report, clock
        self._lock = threading.Lock()  # of the cells and the counts
        self._cells = OpenCells()
        self._running: dict[int, Sequence[OwnedPod]] = {}  # by the beginning of the cell at whose end they ran
        self._answered, self._failed = 0, Counter[str]()
        self._stored = clock() // _STORE_SECONDS

    def run(self) -> None:
        """Record; what is recorded is stored before it returns, also after KeyboardInterrupt."""
        try:
            while not self._ended.is_set():
                began = time.monotonic()
                seconds = seconds_between(len(self._listed.nodes()))
                self.round(seconds)
                self._ended.wait(max(0.0, began + seconds - time.monotonic()))
                self.tidy(seconds)
        finally:
            self._way.close()
            self._close_cells(self._clock())
            self.store()

    def round(self, seconds: float) -> None:
        """Ask every node that is ready once. seconds: over which the requests are spread"""
        nodes = self._listed.nodes()
        self._remember_running()
        with self._lock:
            self._cells.keep_only({node.name for node in nodes})
        ready = [node.name for node in nodes if node.ready]
        with self._lock:
            self._failed[f"only {MOST_NODES} nodes are recorded"] += len(ready[MOST_NODES:])
        self._way.read(ready[:MOST_NODES], seconds, self._took)

    def tidy(self, seconds: float) -> None:
        """Close the cells that are over, and store them every half hour. seconds: that a round takes"""
        self._close_cells(self._clock() - seconds - _MEASURED_LATE_SECONDS)
        if self._clock() // _STORE_SECONDS != self._stored:
            self._stored = self._clock() // _STORE_SECONDS
            self.store()

    @property
    def answered(self) -> int:
        """Readings since the last store."""
        with self._lock:
            return self._answered

    def store(self) -> None:
        """Bring what is recorded into the history, and report it."""
        until = self._recording.store(datetime.fromtimestamp(self._clock(), UTC))
        with self._lock:
            answered, failed = self._answered, self._failed
            self._answered, self._failed = 0, Counter()
        why_not = failed.most_common(1)[0][0] if failed.total() else ""
        n_days, n_pods, n_nodes = self._recording.n_days, len(self._listed.running()), len(self._listed.nodes())
        self._report(Recorded(until, n_days, n_pods, n_nodes, answered, answered + failed.total(), why_not))

    def _took(self, node: str, reading: NodeReading | None, why: str) -> None:
        with self._lock:
            if reading is None:
                self._failed[why] += 1
            else:
                self._answered += 1
                self._cells.add(node, reading)
        if reading is None:
            logger.debug("a node was not read", extra={"node": node, "error": why})

    def _remember_running(self) -> None:
        """The pods that run as a cell ends, which is a few seconds ago."""
        over = self._start_of(self._clock()) - CELL_SECONDS
        if over not in self._running:
            self._running = {start: pods for start, pods in self._running.items() if start >= over - 2 * CELL_SECONDS}
            self._running[over] = self._listed.running()

    def _close_cells(self, until: float) -> None:
        with self._lock:
            self._cells.drop_after(self._clock() + CELL_SECONDS)
            closed = [(start, *self._cells.close(start)) for start in self._cells.over(until)]
        for start, pods, nodes in closed:
            if nodes:
                running = self._running.get(start) or self._listed.running()
                records = [_pod_record(one) for one in running]
                self._recording.add(start, records, list(map(_node_record, self._listed.nodes())), pods, nodes)

    @staticmethod
    def _start_of(at: float) -> int:
        return int(at // CELL_SECONDS) * CELL_SECONDS


def _pod_record(owned: OwnedPod) -> PodRecord:
    pod, top = owned.pod, owned.top
    return PodRecord(
        0,
        pod.namespace,
        pod.name,
        pod.uid,
        pod.node,
        _pair(pod.owner),
        None if top is None else _pair(top),
        (pod.requests.get("cpu"), pod.requests.get("memory")),
    )


def _node_record(node: NodeInfo) -> NodeRecord:
    return NodeRecord(node.name, _cpu_and_memory(node.capacity), _cpu_and_memory(node.allocatable))


def _cpu_and_memory(quantities: Mapping[str, float]) -> tuple[float | None, float | None]:
    return quantities.get("cpu"), quantities.get("memory")


def _pair(owner: Owner) -> tuple[str, str]:
    return owner.kind, owner.name
