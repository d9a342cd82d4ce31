"""Settings of tenants: `schedule.tenants`."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class QuotaPool(Enum):
    """How much quotas may use in all, with what they lend to each other."""

    GUARANTEED = "guaranteed"  # what all of them are guaranteed together, as scheduler-plugins has it
    NODES = "nodes"  # what the nodes have, but for pods without a quota, as Koordinator has it


class TenantOptions(SettingGroup):
    """ElasticQuotas: what tenants may use, lend and take back (docs/use/tenants.md). Without such objects nothing of it
    matters."""

    enabled: bool = True
    """Heed ElasticQuotas. If false, none limits a pod, and tenants have no queue."""

    pool: QuotaPool = QuotaPool.GUARANTEED
    """What may be used in all. guaranteed: the sum of what quotas at the top have as min. nodes: what the nodes can
    allocate, less what pods without a quota request."""

    by_forecast: bool = True
    """Lend only what the owner is not expected to need while the borrower runs. If false, or without a forecast, all
    that is idle is lent."""

    longest_loan: Duration = Field(default=86_400, gt=0, le=172_800)
    """How far ahead the owner's need counts for a pod that does not end."""

    grace: Duration = Field(default=10, ge=0, le=3600)
    """Time that a pod within its tenant's min waits before pods that borrow are evicted for it."""

    reclaim: bool = True
    """Evict pods that borrow. If false, lent quota returns only as they end."""

    fair: bool = True
    """Pods of tenants wait in a queue of their own, in which the tenant goes first that uses least of its min."""
