"""Counts of moves and evictions since the start, and their Prometheus collector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from placement.reservations.watched_plans import MoveState
from rebalancer.execution.move_rooms import MoveRoom
from rebalancer.execution.observation import Reply
from rebalancer.execution.plan_wire import MoveStatus

_LABELS = {
    Reply.ACCEPTED: "accepted",
    Reply.ASKED: "asked",
    Reply.BUDGET: "refused",
    Reply.FAILED: "failed",
    Reply.UNKNOWN: "unknown",
}


@dataclass(slots=True)
class ExecutionFigures:
    """
    moves         : moves that entered each state
    evictions     : requests to evict a pod, by what was answered
    ready_seconds : sum over moves that are done, from the eviction until the replacement was ready
    under_way     : moves under way now
    rooms         : moves, by what became of the room for their replacement
    troubles      : steps that were not taken, because the API server did not answer or refused
    """

    moves: Counter[MoveState] = field(default_factory=Counter)
    evictions: Counter[Reply] = field(default_factory=Counter)
    rooms: Counter[MoveRoom] = field(default_factory=Counter)
    ready_seconds: float = 0.0
    under_way: int = 0
    troubles: int = 0

    def count_state(self, record: MoveStatus) -> None:
        """Count a move that has entered a state."""
        self.moves[record.state] += 1
        if record.state is MoveState.DONE and record.evicted_at is not None and record.ended_at is not None:
            self.ready_seconds += (record.ended_at - record.evicted_at).total_seconds()

    def count_eviction(self, reply: Reply) -> None:
        """Count a request to evict a pod."""
        self.evictions[reply] += 1

    def count_room(self, room: MoveRoom) -> None:
        """Count what became of the room for the replacement of a move."""
        self.rooms[room] += 1


class ExecutionCollector(Collector):
    """Implements prometheus_client's Collector."""

    def __init__(self, figures: ExecutionFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the metrics; states and answers that did not occur are 0."""
        figures = self._figures
        moves = CounterMetricFamily(
            "forecast_rebalance_moves", "Moves that entered each state since the start.", labels=["state"]
        )
        for state in MoveState:
            if state is not MoveState.PLANNED:
                moves.add_metric([state], figures.moves[state])
        evictions = CounterMetricFamily(
            "forecast_rebalance_evictions",
            "Requests to evict a pod since the start, by what the API server answered; asked: EvictionRequests.",
            labels=["outcome"],
        )
        for reply, label in _LABELS.items():
            evictions.add_metric([label], figures.evictions[reply])
        rooms = CounterMetricFamily(
            "forecast_rebalance_reservations",
            "Moves by what became of the room for their replacement: held, absent or failed.",
            labels=["outcome"],
        )
        for room in MoveRoom:
            rooms.add_metric([room], figures.rooms[room])
        yield moves
        yield evictions
        yield rooms
        yield CounterMetricFamily(
            "forecast_rebalance_ready_seconds",
            "Seconds from the eviction until the replacement was ready, summed over moves that are done.",
            value=figures.ready_seconds,
        )
        yield CounterMetricFamily(
            "forecast_rebalance_troubles",
            "Steps that were not taken, because the API server did not answer or refused.",
            value=figures.troubles,
        )
        yield GaugeMetricFamily("forecast_rebalance_moves_under_way", "Moves under way now.", value=figures.under_way)
