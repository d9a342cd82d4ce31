"""Figures of the live tables: what the metrics and the status endpoint export."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from forecast.arrays import Floats
from forecast.backtest import OURS
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer.answers import ModelStatus, Status, VirtualAvailability
from scorer.degradation import level_of_nodes
from scorer.live_tables import LiveTables
from scorer.predicted.horizon import Horizon
from scorer.scorer_api import NodeFigures
from scorer.scores.capacity import limited


def published_losses(backtest: Mapping[str, Any], info: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Return the pinball losses that a model was published with, by (resource, quantile); lower is better.

    They are those of its backtest, else of the gate's comparison on the nights before. If the gate held a resource
    back, the arrays are those of the model before, and so is the loss. What cannot be read is left out.

    backtest, info : as in the manifest
    """
    gate = info.get("gate")
    sources = [
        {name: _inner(figures, OURS) for name, figures in _items(backtest.get("resources"))},
        {name: _inner(figures, _judged(figures)) for name, figures in _items(gate)},
    ]
    losses: dict[tuple[str, str], float] = {}
    for source in sources:
        for resource, score in source.items():
            for quantile, key in (("0.5", "loss50"), ("0.95", "loss95")):
                value = score.get(key)
                if isinstance(value, int | float):
                    losses.setdefault((resource, quantile), float(value))
    return losses


def _judged(result: Any) -> str:
    """Whose arrays the gate let be published; `verdict` as in trainer/gate/gate_verdict.py."""
    return "current" if isinstance(result, Mapping) and result.get("verdict") == "held_back" else "candidate"


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _inner(value: Any, key: str) -> Mapping[str, Any]:
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


class Figures(LiveTables):
    """The part of `scorer.scorer_api.ScorerApi` that numbers everything and scores nothing."""

    def virtual_available(self) -> VirtualAvailability:
        """Load estimates of all nodes."""
        with self._lock:
            state = self._cluster.state
            rows = np.flatnonzero(state.alive)
            return VirtualAvailability(
                nodes=tuple(state.names[row] for row in rows.tolist()),
                resources=tuple(r.name for r in RESOURCES),
                available=self._cluster.virtual_available()[rows],
                capacity=self._cluster.capacity[rows],
                assumed=self._cluster.capacity_assumed[rows],
                charged=self._cluster.charges.total(state.n_rows)[rows],
                pods_charged=len(self._cluster.charges),
                metrics_age_seconds=self._metrics_age(),
            )

    def node_figures(self) -> NodeFigures:
        """Figures of all nodes, for the metrics endpoint; may be a minute old."""
        with self._lock:
            available = self.virtual_available()
            level, _ = self.level()
            slot = 0 if self._cluster.predicted is None else self._cluster.predicted.horizon.slot
            levels = level_of_nodes(level, self._cluster.measured_nodes())
            of_nodes = np.array([levels[self._cluster.state.row_of[name]] for name in available.nodes], dtype=np.int64)
        n, r = len(available.nodes), len(RESOURCES)
        usage, model_usage, peak_at = (np.full((n, r, 2), np.nan) for _ in range(3))
        peak, frozen = (np.full((n, r, 2, 2), np.nan) for _ in range(2))
        shadow_usage: Floats | None = None
        shadow_peak: Floats | None = None
        for overview, peaks in ((self._overview, peak), (self._frozen, frozen)):
            if overview is None:
                continue
            row_of = overview.rows()
            at = np.array([row_of.get(name, -1) for name in available.nodes], dtype=np.int64)
            there, rows = at >= 0, at[at >= 0]
            peaks[there] = overview.peak[rows]
            if overview is not self._overview:
                continue
            peak_at[there] = overview.peak_times()[rows]
            if overview.shadow_usage is not None and overview.shadow_peak is not None:
                shadow_usage, shadow_peak = np.full((n, r, 2), np.nan), np.full((n, r, 2, 2), np.nan)
                shadow_peak[there] = overview.shadow_peak[rows]
            if (step := slot - overview.horizon.slot) in (0, 1):
                usage[there] = overview.usage[rows, :, :, step]
                model_usage[there] = overview.model_usage[rows, :, :, step]
                if shadow_usage is not None and overview.shadow_usage is not None:
                    shadow_usage[there] = overview.shadow_usage[rows, :, :, step]
        return NodeFigures(
            nodes=available.nodes,
            resources=available.resources,
            usage=usage,
            model_usage=model_usage,
            peak=peak,
            peak_at=peak_at,
            frozen_peak=frozen,
            available=available.available,
            capacity=np.where(limited(available.capacity), available.capacity, np.nan),
            assumed=available.assumed,
            level=of_nodes,
            shadow_usage=shadow_usage,
            shadow_peak=shadow_peak,
        )

    def service_peaks(self) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
        """Services, resources, and (n_services, n_resources, 2) predicted peak of one pod today, 0.5 and 0.95."""
        resources = tuple(r.name for r in RESOURCES)
        model = self._model
        if model is None:
            return (), resources, np.zeros((0, len(RESOURCES), 2))
        with self._lock:
            state = self._cluster.state
            keys = [key for key in state.service_of if key in model.profiles.row_of]
            replicas = np.array([state.replicas(state.service_of[key]) for key in keys])
            today = Horizon.at(self._now(), model.loaded.model.calendar).today
        return tuple(map(str, keys)), resources, model.profiles.peaks(keys, replicas, today)

    def backtest_loss(self) -> Mapping[tuple[str, str], float]:
        """(resource, quantile) -> loss as published with the model; empty without one."""
        if self._model is None:
            return {}
        return published_losses(self._model.loaded.backtest, self._model.loaded.model.info)

    def ages(self) -> tuple[float | None, float | None]:
        """Seconds since the model was made and since the newest measurement; None = there is none."""
        with self._lock:
            return self._model_age(), self._metrics_age()

    def service_of(self, pod: PodInfo) -> ServiceKey:
        """The service a pod belongs to, be it in the cluster or not."""
        with self._lock:
            return self._cluster.state.service_key(pod)

    def peak_share(self, pod: PodInfo, node: str) -> float | None:
        """Share of its capacity that a node's fullest resource is predicted to use at its peak with the pod.

        Of resources whose capacity is known: an assumed one makes no node full. None without a model, or for a node of
        which no capacity is known.
        """
        with self._lock, self._cluster.without(pod.uid):
            predicted, row = self._cluster.predicted, self._cluster.state.row_of.get(node)
            if predicted is None or row is None or row >= predicted.load.n_nodes or not predicted.load.known[row]:
                return None
            peaks = predicted.load.peaks_with(self._cluster.profile(pod), np.array([row]))[0]
            known = limited(predicted.capacity[row]) & ~predicted.capacity_assumed[row]
            return float(peaks[known].max()) if known.any() else None

    def status(self) -> Status:
        """The state of the scorer."""
        synced, _, words = self._state_source()
        with self._lock:
            awaited = synced and self._awaits_model()
            level, reasons = self.level()
            state = self._cluster.state
            predicted = self._cluster.predicted
            n_nodes, n_pods = int(state.alive.sum()), len(state.pods)
            n_services = len({seat.service for seat in state.seat_of.values()})
            unknown = n_pods if predicted is None else predicted.unknown_pods
            measured = int((self._cluster.measured_nodes() & state.alive).sum())
            unread = len(self._cluster.unread_capacities())
            now = self._now()
        sources = dict(words)
        if self._usage_source is not None:
            sources["usage"] = self._usage_error or ("measured" if measured else "not measured yet")
        model = None
        if self._model is not None:
            of = self._model.loaded.model
            model = ModelStatus(
                version=self._model.loaded.version,
                trained_until=of.first_day - timedelta(days=1),
                age_seconds=self._model_age() or 0.0,
                services=len(of.services),
                nodes=len(of.nodes),
                time_zone=of.calendar.time_zone,
                refused=self._refused,
            )
        return Status(
            ready=synced and not awaited,
            not_ready_because=(
                "the cluster has not been read completely yet"
                if not synced
                else "the model is being read"
                if awaited
                else None
            ),
            level=level,
            reasons=reasons,
            now=now,
            model=model,
            refused_model=self._refused,
            nodes=n_nodes,
            pods=n_pods,
            services=n_services,
            unknown_service_pods=unknown,
            state_age_seconds=self._state_age(),
            metrics_age_seconds=self._metrics_age(),
            measured_nodes=measured,
            sources=sources,
            last_check=self._last_check,
            unread_capacities=unread,
        )
