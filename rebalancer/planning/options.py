"""Settings of plans: `rebalance.planning`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import SettingGroup


class PlanningOptions(SettingGroup):
    """Which moves are worth it, and how hard the planner looks for them."""

    least_gain: float = Field(default=0.5, ge=0)
    """Node half hours of expected heat that a move has to prevent beyond its cost.

    Less is within the forecast's error."""
    guarded_margin: float = Field(default=0.15, ge=0, le=1)
    """No move makes a node hot that was not, even if its load is this part of the margin above the forecast.

    The margin is the forecast's upper bound less its mean. 0 trusts the mean, 1 the bound."""
    targets_looked_at: int = Field(default=24, ge=1)
    """Nodes that are looked at exactly for a pod, after a rough look at all."""
    exchanges_looked_at: int = Field(default=100, ge=0)
    """Pairs of moves that are looked at exactly for a node which single moves leave hot. 0 plans no pairs."""
    chains_looked_at: int = Field(default=60, ge=0)
    """Chains of up to four moves that are looked at for such a node. 0 plans no chains."""
    improvement_effort: float = Field(default=100, ge=0)
    """Second thoughts about a plan: million figures of pods to look at. 100 take a second or two.

    A plan that took more than a quarter of it is left as it is."""
