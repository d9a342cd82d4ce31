"""A plan as others get it: in `rebalance --plan --json` and `GET /v1/rebalance`, and as the RebalancePlan that records
it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from rebalancer.execution.plan_wire import MOST_MOVES, MoveSpec, PlanMode, PlanSpec, Predicted, Trigger, clipped
from rebalancer.plan_maker import MadePlan, NamedMove
from rebalancer.rebalance_settings import RebalanceMode

_SECONDS_PER_HOUR: Final = 3600.0


class PlannedMove(Struct, frozen=True):
    """One pod to another node. gain: node half hours of heat; partner: position of the move that it is made for."""

    namespace: str
    pod: str
    uid: str
    service: str
    source: str
    target: str
    gain: float
    reason: str
    partner: int | None
    by_surge: bool


class PlanWindow(Struct, frozen=True):
    """Moves may start in it."""

    begin: datetime
    end: datetime


class RebalanceAnswer(Struct, frozen=True):
    """What moves would help, and how much. Times are in the cluster's time zone.

    hot_before, hot_after : node half hours over the hot share of capacity until `until`, expected
    at_risk_before, at_risk_after : the same by the upper bound
    heat_before, heat_after : penalty that the plan brings down; most_gain: no plan within the budget gains more
    windows_because : how the windows were found, or why there is none
    kept            : pods that may not be moved, by reason
    """

    mode: str
    made_at: datetime
    until: datetime
    window: PlanWindow | None
    windows: list[PlanWindow]
    windows_because: str
    hot_before: int
    hot_after: int
    at_risk_before: int
    at_risk_after: int
    heat_before: float
    heat_after: float
    most_gain: float
    moves: list[PlannedMove]
    n_pods: int
    kept: dict[str, int]


def answer_of(made: MadePlan, mode: str) -> RebalanceAnswer:
    """Return the report of a plan."""
    zone = made.made_at.tzinfo
    windows = [PlanWindow(one.begin.astimezone(zone), one.end.astimezone(zone)) for one in made.windows.windows]
    found = made.plan
    return RebalanceAnswer(
        mode=mode,
        made_at=made.made_at,
        until=made.until.astimezone(zone),
        window=next(iter(windows), None),
        windows=windows,
        windows_because=made.windows.because,
        hot_before=found.hot_before,
        hot_after=found.hot_after,
        at_risk_before=found.at_risk_before,
        at_risk_after=found.at_risk_after,
        heat_before=found.heat_before,
        heat_after=found.heat_after,
        most_gain=found.most_gain,
        moves=[_move(one) for one in made.moves],
        n_pods=made.n_pods,
        kept=dict(made.kept),
    )


def _move(move: NamedMove) -> PlannedMove:
    return PlannedMove(
        namespace=move.namespace,
        pod=move.pod,
        uid=move.uid,
        service=f"{move.service.kind}/{move.service.name}",
        source=move.source,
        target=move.target,
        gain=move.gain,
        reason=move.reason,
        partner=move.partner,
        by_surge=move.by_surge,
    )


def spec_of(
    made: MadePlan,
    trigger: Trigger,
    *,
    configured: RebalanceMode,
    mode: RebalanceMode,
    start_before: datetime,
) -> PlanSpec:
    """Return the spec of a plan.

    configured, mode : what the settings say, and what the grades of past nights leave of it
    start_before     : moves that have not begun by then are left out
    """
    found = made.plan
    return PlanSpec(
        created_at=made.made_at.astimezone(UTC).replace(microsecond=0),
        trigger=trigger,
        mode=PlanMode.ON if mode is RebalanceMode.ON else PlanMode.SHADOW,
        configured=configured.value,
        moves=tuple(
            MoveSpec(
                namespace=one.namespace,
                pod=one.pod,
                uid=one.uid,
                service=f"{one.service.kind}/{one.service.name}",
                source=one.source,
                to=one.target,
                reason=clipped(one.reason),
                gain=one.gain,
                partner=one.partner,
                surge=one.by_surge,
            )
            for one in made.moves[:MOST_MOVES]
        ),
        predicted=Predicted(
            hot_before=found.hot_before,
            hot_after=found.hot_after,
            risk_before=found.at_risk_before,
            risk_after=found.at_risk_after,
            heat_before=found.heat_before,
            heat_after=found.heat_after,
            most_gain=found.most_gain,
            gain=made.predicted_gain,
            horizon_hours=(made.until - made.made_at).total_seconds() / _SECONDS_PER_HOUR,
        ),
        start_before=start_before.astimezone(UTC).replace(microsecond=0),
    )
