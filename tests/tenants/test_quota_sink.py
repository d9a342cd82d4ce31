"""Which lists of ElasticQuotas make the process count and admit anew."""

from __future__ import annotations

from contextlib import nullcontext

from scorer.assuming_cluster import AssumingCluster
from scorer.options import ScorerOptions
from tenants.elastic_quota import ElasticQuota
from tenants.ledger import QuotaLedger
from tenants.pod_amounts import PodAmounts
from tenants.quotas import Quotas, QuotaSink
from tests.tenants.tenant_world import quota


def sink() -> tuple[QuotaSink, list[tuple[ElasticQuota, ...]]]:
    """A sink, and the quotas in use at each change that listeners heard of."""
    cluster = AssumingCluster(ScorerOptions(), now=0.0)
    quotas = Quotas(QuotaLedger(cluster.state, PodAmounts(cluster, lambda pod, node: 0.0)))
    heard: list[tuple[ElasticQuota, ...]] = []
    quotas.on_change.append(lambda: heard.append(quotas.tree.quotas))
    return QuotaSink(quotas, nullcontext, ()), heard


def test_listeners_hear_once_of_quotas_that_came_changed_and_went() -> None:
    quotas, heard = sink()
    for _ in range(2):
        quotas.absent()  # the definition is not installed
    assert quotas.is_read
    for listed in ([quota("a", 1)], [quota("a", 1)], [quota("a", 2)], []):
        quotas.replace(listed)
    assert heard == [(), (quota("a", 1),), (quota("a", 2),), ()]
