"""Figures of the live tables: what the metrics and the status endpoint export."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import numpy as np

from base.arrays import Floats
from cluster.degradation import level_of_nodes
from cluster.live_tables import LiveTables
from cluster.predicted.horizon import Horizon
from cluster.predicted.unknown_capacity import limited
from forecast.backtest import OURS
from forecast.model_findings import findings_of
from forecast.resources import RESOURCES
from kube.objects.objects import GATE
from scorer.answers import ModelStatus, PoolLevel, ScorerStatus, VirtualAvailability
from scorer.scorer_api import NodeFigures
from scorer.scoring import neutral_scores

_DAYS: Final = 2
"""Days whose peaks are exported: today and tomorrow."""


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


def virtual_available(tables: LiveTables) -> VirtualAvailability:
    """Load estimates of all nodes."""
    with tables.reading() as cluster:
        state = cluster.state
        rows = np.flatnonzero(state.alive)
        return VirtualAvailability(
            nodes=tuple(state.names[row] for row in rows.tolist()),
            resources=tuple(r.name for r in RESOURCES),
            available=cluster.virtual_available()[rows],
            capacity=cluster.capacity[rows],
            assumed=cluster.capacity_assumed[rows],
            charged=cluster.charges.total(state.n_rows)[rows],
            pods_charged=len(cluster.charges),
            metrics_age_seconds=tables.metrics_age(),
        )


def node_figures(tables: LiveTables) -> NodeFigures:
    """Figures of all nodes, for the metrics endpoint; may be a minute old."""
    with tables.reading() as cluster:
        available = virtual_available(tables)
        level, _ = tables.level()
        slot = 0 if cluster.predicted is None else cluster.predicted.horizon.slot
        levels = level_of_nodes(level, cluster.measured_nodes())
        of_nodes = np.array([levels[cluster.state.row_of[name]] for name in available.nodes], dtype=np.int64)
    n, r = len(available.nodes), len(RESOURCES)
    usage, model_usage, peak_at = (np.full((n, r, 2), np.nan) for _ in range(3))
    peak, frozen = (np.full((n, r, 2, 2), np.nan) for _ in range(2))
    shadow_usage: Floats | None = None
    shadow_peak: Floats | None = None
    for overview, peaks in ((tables.overview, peak), (tables.frozen_overview, frozen)):
        if overview is None:
            continue
        row_of = overview.rows()
        at = np.array([row_of.get(name, -1) for name in available.nodes], dtype=np.int64)
        there, rows = at >= 0, at[at >= 0]
        peaks[there] = overview.peak[rows, :, :, :_DAYS]
        if overview is not tables.overview:
            continue
        peak_at[there] = overview.peak_times(_DAYS)[rows]
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


def service_peaks(tables: LiveTables) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
    """Services, resources, and (n_services, n_resources, 2) predicted peak of one pod today, 0.5 and 0.95."""
    resources = tuple(r.name for r in RESOURCES)
    model = tables.model
    if model is None:
        return (), resources, np.zeros((0, len(RESOURCES), 2))
    with tables.reading() as cluster:
        state = cluster.state
        keys = [key for key in state.service_of if key in model.profiles.row_of]
        replicas = np.array([state.replicas(state.service_of[key]) for key in keys])
        today = Horizon.at(tables.now(), model.loaded.model.calendar).today
    return tuple(map(str, keys)), resources, model.profiles.peaks(keys, replicas, today)


def backtest_loss(tables: LiveTables) -> Mapping[tuple[str, str], float]:
    """(resource, quantile) -> loss as published with the model; empty without one."""
    if tables.model is None:
        return {}
    return published_losses(tables.model.loaded.backtest, tables.model.loaded.model.info)


def status(tables: LiveTables) -> ScorerStatus:
    """The state of the scorer."""
    synced, _, words = tables.source.state()
    with tables.reading() as cluster:
        awaited = synced and tables.awaits_model()
        level, reasons = tables.level()
        state = cluster.state
        predicted = cluster.predicted
        n_nodes, n_pods = int(state.alive.sum()), len(state.pods)
        n_services = len({seat.service for seat in state.seat_of.values()})
        unknown = n_pods if predicted is None else predicted.unknown_pods
        measured = int((cluster.measured_nodes() & state.alive).sum())
        gated = state.gated_since(GATE)
        unread, beyond = len(cluster.unread_capacities()), len(cluster.beyond_nodes())
        neutral = {name: why.value for name, why in neutral_scores(cluster, level).items()}
        water = [PoolLevel(pool, level, stack) for pool, (level, stack) in sorted(cluster.water_levels().items())]
        now = tables.now()
    sources = dict(words)
    if tables.usage_source is not None:
        sources["usage"] = tables.usage_error or ("measured" if measured else "not measured yet")
    model = None
    if tables.model is not None:
        of = tables.model.loaded.model
        model = ModelStatus(
            version=tables.model.loaded.version,
            trained_until=of.first_day - timedelta(days=1),
            age_seconds=tables.model_age() or 0.0,
            services=len(of.services),
            nodes=len(of.nodes),
            time_zone=of.calendar.time_zone,
            refused=tables.refused,
            findings=findings_of(of.info),
        )
    return ScorerStatus(
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
        refused_model=tables.refused,
        nodes=n_nodes,
        pods=n_pods,
        services=n_services,
        unknown_service_pods=unknown,
        state_age_seconds=tables.state_age(),
        metrics_age_seconds=tables.metrics_age(),
        measured_nodes=measured,
        sources=sources,
        last_check=tables.last_check,
        unread_capacities=unread,
        pods_beyond_nodes=beyond,
        gated_pods=len(gated),
        gated_longest_seconds=max(0.0, now.timestamp() - min(gated)) if gated else 0.0,
        neutral_scores=neutral,
        water_levels=water,
    )
