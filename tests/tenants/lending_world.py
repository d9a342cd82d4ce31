"""Tenant `shop`, whose service grows from two pods to nine from 19:00 to 21:00, and tenant `batch`, which borrows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cluster.model_watch import LoadedModel
from cluster.runs.expected import EXPECTED_RUN_ANNOTATION
from forecast.service_key import Owner
from kube.objects.objects import PodInfo
from placement.node_rule_settings import DeviceOptions
from placement.virtual_node_settings import ServerlessOptions
from placement.virtual_node_table import Claims
from profiles.schedule_settings import ScheduleSettings
from scheduler.queue_tables import OwnNodes
from scheduler.tenant_tables import TenantTables, tenant_tables
from tenants.elastic_quota import ElasticQuota
from tenants.expected_need import ExpectedNeed
from tests.scorer.live_cluster import at, growing, pod_of
from tests.scorer.scorer_at import LiveScorer

SHOP = ElasticQuota("shop", "shop", guaranteed={"cpu": 10.0})
BATCH = ElasticQuota("batch", "batch", guaranteed={"cpu": 2.0})


def shop_pod(number: int, *, service: int = 5, on: str = "node-0", cpu: float = 1.0) -> PodInfo:
    return pod_of(service, f"shop-{service}-{number}", on, cpu=cpu, started=at(0) if on else None)


def job_pod(name: str, *, run: str = "1h", on: str = "", cpu: float = 1.0, started: float | None = None) -> PodInfo:
    made = pod_of(None, name, on, cpu=cpu, started=started, annotations={EXPECTED_RUN_ANNOTATION: run})
    return replace(made, namespace="batch", owner=Owner("Job", "crunch"), owner_uid="job-crunch")


class LendingWorld:
    """Tables of tenants over a live scorer at some hour of the model's first day."""

    def __init__(
        self,
        hour: float = 12.0,
        *,
        pods: Sequence[PodInfo] | None = None,
        quotas: Sequence[ElasticQuota] = (SHOP, BATCH),
        model: LoadedModel | None = None,
        options: Mapping[str, Any] | None = None,
        without_model: bool = False,
    ) -> None:
        self.live = LiveScorer(hour, pods=(), model=model or growing(), without_model=without_model)
        settings = ScheduleSettings.model_validate({"tenants": dict(options or {})})
        with self.live.scorer.tables.reading() as cluster:
            tables = tenant_tables(
                self.live.scorer,
                cluster,
                settings,
                OwnNodes(frozenset({settings.domain}), Claims(ServerlessOptions())),
                DeviceOptions(),
            )
        assert tables is not None
        self.tables: TenantTables = tables
        tables.sink.replace(quotas)
        for pod in [shop_pod(n) for n in range(2)] if pods is None else pods:
            self.put(pod)

    @property
    def need(self) -> ExpectedNeed:
        assert self.tables.need is not None
        return self.tables.need

    def put(self, pod: PodInfo) -> PodInfo:
        with self.live.scorer.tables.changing() as cluster:
            cluster.put_pod(pod)
        return pod

    def remove(self, pod: PodInfo) -> None:
        with self.live.scorer.tables.changing() as cluster:
            cluster.delete_pod(pod.uid)

    def admits(self, pod: PodInfo) -> bool:
        return self.tables.quotas.denial(pod) is None

    def expected_cores(self, tenant: str, hours: float) -> float | None:
        """Cores that a tenant is expected to need within so many hours; None = nothing is expected."""
        found, tree = self.need(3600 * hours), self.tables.quotas.tree
        row = next(row for row, quota in enumerate(tree.quotas) if quota.namespace == tenant)
        return None if found is None else float(found[row, tree.resources.index("cpu")]) / 1000
