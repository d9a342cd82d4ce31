"""Settings of tenants: `tenants`, and COMMAND.tenants where one differs."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class QuotaPool(Enum):
    """How much quotas may use in all, with what they lend to each other."""

    GUARANTEED = "guaranteed"  # what all of them are guaranteed together, as scheduler-plugins has it
    NODES = "nodes"  # what the nodes have, but for pods without a quota, as Koordinator has it


class TenantOptions(SettingGroup):
    """ElasticQuotas: what tenants may use, lend and take back (docs/use/tenants.md). A command that differs has the
    same keys under COMMAND.tenants."""

    enabled: bool = True
    """Heed ElasticQuotas. If false, they limit no pod, and tenants have no queue."""

    pool: QuotaPool = QuotaPool.GUARANTEED
    """What tenants may use in all: the sum of min of the top quotas, or what nodes have left beside pods without a
    quota."""

    by_forecast: bool = True
    """Lend only what the owner is not expected to need. If false, or without a forecast, all that is idle."""

    longest_loan: Duration = Field(default=86_400, gt=0, le=172_800)
    """How far ahead the owner's need counts for a pod that does not end."""

    grace: Duration = Field(default=10, ge=0, le=3600)
    """Time that a pod within its tenant's min waits before pods that borrow are evicted for it."""

    reclaim: bool = True
    """Evict pods that borrow. If false, lent quota returns only as they end."""

    fair: bool = True
    """Pods of tenants have a queue of their own: who uses least of its min goes first."""
