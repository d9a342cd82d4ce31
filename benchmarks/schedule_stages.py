"""Where the time of the scheduling loops goes: CPU by stage, from timers put around functions for one round."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from cluster.assuming_cluster import AssumingCluster
from scheduler.binding.binding_cycles import BindingCycles
from scheduler.binding_results import BindingResults
from scheduler.cycle import placing
from scheduler.cycle.batch_plan import BatchPlan
from scheduler.cycle.cycle import SchedulingCycle
from scheduler.cycle.placing import UnitPlacer
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue_events import ClusterFollower
from scheduler.scheduler import Scheduler

_TIMED: Final[tuple[tuple[Any, str, str], ...]] = (
    (SchedulingQueue, "pop", "queue: pop"),
    (SchedulingQueue, "done", "queue: done"),
    (SchedulingQueue, "rejected", "queue: rejected"),
    (SchedulingCycle, "run", "cycle, the rest"),
    (placing, "verdict", "filters"),
    (placing, "candidates", "filters"),
    (UnitPlacer, "_ranking", "plan: forecast"),
    (BatchPlan, "__init__", "plan: scores"),
    (placing, "node_parts", "scores, one pod"),
    (UnitPlacer, "_place_some", "place"),
    (AssumingCluster, "assume_all", "assume"),
    (AssumingCluster, "assume", "assume"),
    (ClusterFollower, "placed", "act: events"),
    (BindingCycles, "start", "act: bindings"),
    (Scheduler, "_act", "act, the rest"),
    (BindingResults, "_bound", "outcome"),
)

STAGES: Final = tuple(dict.fromkeys(stage for _, _, stage in _TIMED))
"""In the order in which a pod passes them, nearly."""


class Stages:
    """Context manager. Functions are timed inside, each without those of other stages that it calls.

    seconds : of CPU, by stage, of all threads
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self._inside = threading.local()
        self._lock = threading.Lock()
        self._before: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        for owner, name, stage in _TIMED:
            before = getattr(owner, name)
            self._before.append((owner, name, before))
            setattr(owner, name, self._timed(before, stage))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for owner, name, before in self._before:
            setattr(owner, name, before)

    def _timed(self, act: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            of_caller = getattr(self._inside, "seconds", 0.0)
            self._inside.seconds = 0.0  # of timed functions that this one calls
            began = time.thread_time()
            try:
                return act(*arguments, **named)
            finally:
                took = time.thread_time() - began
                with self._lock:
                    self.seconds[stage] += took - self._inside.seconds
                self._inside.seconds = of_caller + took

        return timed

    def per_pod(self, n_pods: int) -> Mapping[str, float]:
        """Microseconds, of stages that took any time."""
        return {stage: 1e6 * seconds / n_pods for stage, seconds in self.seconds.items() if seconds > 0}
