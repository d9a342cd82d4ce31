"""A plan that was made, as the RebalancePlan that records it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rebalancer.execution.wire import MOST_MOVES, Mode, MoveSpec, PlanSpec, Predicted, Trigger, clipped
from rebalancer.options import Mode as ConfiguredMode
from rebalancer.plan_maker import MadePlan

_SECONDS_PER_HOUR: Final = 3600.0


def spec_of(
    made: MadePlan,
    trigger: Trigger,
    *,
    configured: ConfiguredMode,
    mode: ConfiguredMode,
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
        mode=Mode.ON if mode is ConfiguredMode.ON else Mode.SHADOW,
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
