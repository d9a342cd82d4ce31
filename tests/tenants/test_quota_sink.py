"""Which lists of ElasticQuotas make the process count and admit anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from cluster.assuming_cluster import AssumingCluster
from scorer.options import ScorerOptions
from tenants.elastic_quota import ElasticQuota
from tenants.ledger import QuotaLedger
from tenants.quota_amounts import PodAmounts
from tenants.quotas import Quotas, QuotaSink
from tests.tenants.tenant_world import TenantWorld, nodes, quota, tenant_pod


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


def test_quotas_are_exchanged_some_pods_at_a_time_and_pods_that_come_and_go_meanwhile_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenants.ledger._UNITS_AT_ONCE", 22)  # two pods of one resource
    pods = [tenant_pod(f"p{at}", "ab"[at % 2], node="n0" if at % 3 else "") for at in range(12)]
    world = TenantWorld(nodes(2), [quota("a", 4)], pods)
    looked, pieces, count = list[str](), list[int](), QuotaLedger._look

    def counted(self: QuotaLedger, uid: str) -> None:
        looked.append(uid)
        count(self, uid)

    monkeypatch.setattr(QuotaLedger, "_look", counted)

    @contextmanager
    def reading() -> Iterator[object]:
        before = len(looked)
        with world.scorer.tables.reading() as cluster:
            yield cluster
        pieces.append(len(looked) - before)
        if len(pieces) == 3:  # between two pieces
            assert [one.key for one in world.ledger.tree.quotas] == ["a/a"], "those before hold"
            world.end("p1", "p11")
            world.put(tenant_pod("late", "b"), tenant_pod("p9", "b", node="n1"))

    QuotaSink(world.quotas, reading, ()).replace([quota("a", 4), quota("b", 2)])
    assert max(pieces) == 2 and len(pieces) > 4
    ledger = world.ledger
    found = [array.copy() for array in (ledger.direct, ledger.used, ledger.waiting, ledger.n_used, ledger.n_waiting)]
    charges = dict(ledger.charges)
    ledger.rebuild()
    for one, other in zip(
        found, (ledger.direct, ledger.used, ledger.waiting, ledger.n_used, ledger.n_waiting), strict=True
    ):
        assert np.array_equal(one, other)
    assert charges == ledger.charges and len(charges) == 11
