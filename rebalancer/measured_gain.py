"""What the moves of a plan were worth, by what was measured: reads usage of nodes and pods, and grades the plan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import numpy as np

from base.arrays import Floats
from cluster.live.usage import UsageSource
from cluster.live_tables import LiveTables
from forecast.calendar import SLOT_MINUTES
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.plan_records import RebalancePlan
from rebalancer.execution.plan_wire import MoveSpec, PlanMode
from rebalancer.night_grades import Grade, PlanFacts, grade
from rebalancer.planning.heat import penalty
from rebalancer.rebalance_settings import RebalanceMode, TrustOptions

_SLOT: Final = timedelta(minutes=SLOT_MINUTES)
_MOVED: Final = frozenset({MoveState.DONE})


def measured_grade(plan: RebalancePlan, tables: LiveTables, options: TrustOptions, hot: float) -> Grade:
    """Grade a plan. Raises ForecastError where usage cannot be read."""
    moves = plan.spec.moves
    names = tuple(dict.fromkeys(node for move in moves for node in (move.source, move.to)))
    row_of = {name: row for row, name in enumerate(names)}
    facts = PlanFacts(
        predicted_gain=plan.spec.predicted.gain,
        gain=np.array([move.gain for move in moves], dtype=np.float64),
        source=np.array([row_of[move.source] for move in moves], dtype=np.int64),
        target=np.array([row_of[move.to] for move in moves], dtype=np.int64),
        made=np.array([plan.status_of(move).state in _MOVED for move in moves], dtype=np.bool_),
    )
    since = _half_hour_after(plan.spec.start_before or plan.spec.created_at)
    until = _half_hour_after(plan.spec.created_at + timedelta(hours=plan.spec.predicted.horizon_hours)) - _SLOT
    n_slots = max(int((until - since) / _SLOT), 0)
    source = tables.usage_source
    if source is None or not n_slots or not moves:
        measured = np.full((len(names), len(RESOURCES), n_slots), np.nan)
        usage = np.full((len(moves), len(RESOURCES), n_slots), np.nan)
    else:
        measured = np.stack([source.node_history(_known_as(tables, name), since, until) for name in names])
        usage = np.stack([_usage_of_pod(move, tables, source, since, until) for move in moves])
    mode = RebalanceMode.ON if plan.spec.mode is PlanMode.ON else RebalanceMode.SHADOW
    capacity = _capacity(tables, names)
    return grade(facts, measured, usage, capacity, options, mode=mode, hot=hot, penalty=partial(penalty, hot=hot))


def _none(n_slots: int) -> Floats:
    return np.full((len(RESOURCES), n_slots), np.nan)


def _half_hour_after(moment: datetime) -> datetime:
    begin = datetime.fromtimestamp(0, UTC)
    return begin + -((begin - moment) // _SLOT) * _SLOT


def _known_as(tables: LiveTables, node: str) -> Sequence[str]:
    """All names that metrics may know a node by."""
    with tables.reading() as cluster:
        row = cluster.state.row_of.get(node)
        found = None if row is None else cluster.state.nodes[row]
        return (node,) if found is None else (node, *found.addresses)


def _usage_of_pod(move: MoveSpec, tables: LiveTables, source: UsageSource, since: datetime, until: datetime) -> Floats:
    """(n_resources, n_slots) mean of the pods of its service, which share its work."""
    service = ServiceKey(move.namespace, *move.service.split("/", 1))
    with tables.reading() as cluster:
        pods = [pod.name for pod in cluster.state.pods.values() if cluster.state.service_key(pod) == service]
    if not pods:
        return _none(int((until - since) / _SLOT))
    return source.service_history(service, pods, since, until) / len(pods)


def _capacity(tables: LiveTables, names: Sequence[str]) -> Floats:
    with tables.reading() as cluster:
        known = np.where(cluster.capacity_assumed, np.nan, cluster.capacity)
        rows = [cluster.state.row_of.get(name) for name in names]
        missing = np.full(len(RESOURCES), np.nan)
        return np.array([missing if row is None else known[row] for row in rows]).reshape(len(names), len(RESOURCES))
