"""Metrics of the tide."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from base.arrays import Floats
from profiles.gpu.tide.gpu_demand import TideDemand

_PLAN_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class TideMetrics:
    """For any thread. The exporter registers `collectors`."""

    def __init__(self) -> None:
        self.capacity = _per_pool(
            "capacity", "GPUs of a pool: of nodes that take pods, and of others what is held there."
        )
        self.inference = _per_pool("inference", "GPUs that are held in a pool by pods that are no training's.")
        self.expected = _per_pool("inference_expected", "GPUs that inference is expected to need in this half hour.")
        self.needed = _per_pool("inference_needed", "The same with margins: GPUs that are kept free of training.")
        self.waiting = _per_pool("inference_waiting", "GPUs that pods of inference wait for.")
        self.training = _per_pool("training", "GPUs that pods of training hold in a pool.")
        self.planned = _per_pool(
            "training_planned", "GPUs that trainings are to have after the moves of the last plan."
        )
        self.lacking = _per_pool("lacking", "GPUs that inference will lack though all is done that may be.")
        self.shortfall = Counter(
            "forecast_tide_shortfall_seconds",
            "Seconds in which pods of inference waited for GPUs that training held.",
            ["pool"],
            registry=None,
        )
        self.moves = Counter(
            "forecast_tide_moves",
            "Moves of trainings: shrink, take (stopped as a whole), resume, grow; done, changed (somebody else changed "
            "the workload first), failed, dry_run.",
            ["kind", "outcome"],
            registry=None,
        )
        self.beyond_cap = Counter(
            "forecast_tide_moves_beyond_cap",
            "Moves that inference needed though the moves of the day were used up.",
            registry=None,
        )
        self.unread = Gauge(
            "forecast_tide_unread_workloads", "Workloads, or kinds of them, that could not be read.", registry=None
        )
        self.has_forecast = Gauge(
            "forecast_tide_has_forecast", "1 = demand is forecast; 0 = training may not grow.", registry=None
        )
        self.plan_seconds = Histogram(
            "forecast_tide_plan_seconds",
            "Time taken to look at the cluster and to plan, without reading workloads.",
            buckets=_PLAN_SECONDS,
            registry=None,
        )

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return (
            self.capacity,
            self.inference,
            self.expected,
            self.needed,
            self.waiting,
            self.training,
            self.planned,
            self.lacking,
            self.shortfall,
            self.moves,
            self.beyond_cap,
            self.unread,
            self.has_forecast,
            self.plan_seconds,
        )

    def show(
        self,
        pools: Sequence[str],
        demand: TideDemand,
        training: Floats,
        others: Floats,
        planned: Floats,
        lacking: Floats,
    ) -> None:
        """training, others, planned, lacking: (n_pools,) GPUs"""
        self.has_forecast.set(float(demand.forecast))
        for at, pool in enumerate(pools):
            self.capacity.labels(pool).set(demand.capacity[at])
            self.inference.labels(pool).set(others[at])
            self.expected.labels(pool).set(demand.expected[at, 0])
            self.needed.labels(pool).set(demand.need[at, 0])
            self.waiting.labels(pool).set(demand.waiting[at])
            self.training.labels(pool).set(training[at])
            self.planned.labels(pool).set(planned[at])
            self.lacking.labels(pool).set(lacking[at])
            self.shortfall.labels(pool)  # 0 from the beginning: a rate shows nothing of what a series begins with


def _per_pool(name: str, help_text: str) -> Gauge:
    return Gauge(f"forecast_tide_{name}_gpus", help_text, ["pool"], registry=None)
