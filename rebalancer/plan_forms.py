"""A plan as others get it: in `rebalance --plan --json` and `GET /v1/rebalance`, and as the RebalancePlan that records
it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from rebalancer.execution.plan_wire import MOST_MOVES, MoveSpec, PlanMode, PlanSpec, Predicted, Trigger, clipped
from rebalancer.nights_needed import NightsNeeded
from rebalancer.plan_maker import MadePlan, NamedMove
from rebalancer.planning.move_curve import MoveCurve
from rebalancer.rebalance_settings import RebalanceMode
from scorer.answers import Peak

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


class MissedHours(Struct, frozen=True):
    """Hot node half hours that come before the first move can be made, and the fullest node with its peak in them."""

    hot: int
    node: str
    peak: Peak


class RebalanceAnswer(Struct, frozen=True, kw_only=True):
    """What moves would help, and how much. Times are in the cluster's time zone.

    since : from here on the plan looks; later than now if the first window is
    missed : hot half hours until then, which no move of the plan prevents; None = there are none
    hot_before, hot_after : node half hours over the hot share of capacity until `until`, expected
    at_risk_before, at_risk_after : the same by the upper bound
    heat_before, heat_after : penalty that the plan brings down; most_gain: no plan within the budget gains more
    windows_because : how the windows were found, or why there is none
    kept            : pods that may not be moved, by reason
    """

    mode: str
    made_at: datetime
    since: datetime
    until: datetime
    missed: MissedHours | None
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


class LeftAfterMoves(Struct, frozen=True):
    """So many moves, whatever the budget allows, and the hot node half hours that they leave."""

    moves: int
    hot: int


class BudgetAnswer(Struct, frozen=True):
    """
    moves      : that mend the cluster; nights: that the budget takes for them at best, null = it allows no move
    per_night  : moves that the budget allows, by the setting `limit`
    in_one     : settings with which one night does it
    """

    moves: int
    nights: int | None
    per_night: int
    limit: str
    in_one: dict[str, float]


class PlanAnswer(Struct, frozen=True):
    """What `rebalance --plan` writes beside the plan."""

    curve: list[LeftAfterMoves]
    budget: BudgetAnswer


def plan_answer(curve: MoveCurve, nights: NightsNeeded) -> PlanAnswer:
    """Return how much moves would do, and how long the budget takes for them."""
    points = [LeftAfterMoves(one.moves, one.hot) for one in curve.points]
    return PlanAnswer(
        points, BudgetAnswer(nights.moves, nights.nights, nights.per_night, nights.limit, dict(nights.in_one))
    )


def answer_of(made: MadePlan, mode: str) -> RebalanceAnswer:
    """Return the report of a plan."""
    zone = made.made_at.tzinfo
    windows = [PlanWindow(one.begin.astimezone(zone), one.end.astimezone(zone)) for one in made.windows.windows]
    found = made.plan
    return RebalanceAnswer(
        mode=mode,
        made_at=made.made_at,
        since=made.since.astimezone(zone),
        until=made.until.astimezone(zone),
        missed=None if (of := made.missed) is None else MissedHours(of.hot, of.node, of.peak),
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
