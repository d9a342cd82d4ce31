"""What tenants add to the scorer's tables, for pods of all profiles: made before the cluster is read.

ElasticQuotas --watch--> tree --+
pods --------------------------> ledger --> filter, limit of like pods, who may be evicted
pods, model -----------------------------> what owners will need --> what is lent
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster.assuming_cluster import AssumingCluster
from kube.objects.objects import PodInfo
from placement.devices.declared_devices import node_gpus, pod_gpus
from placement.gate_exemptions import ADVICE
from placement.node_rule_settings import DeviceOptions
from scheduler.queue_tables import OwnNodes
from scheduler.schedule_settings import LoopSettings
from scorer.scorer import Scorer
from tenants.elastic_quota_plugin import ElasticQuotaFilter, QuotaLimit
from tenants.expected_need import ExpectedNeed
from tenants.ledger import PoolOfNodes, QuotaLedger
from tenants.quota_amounts import PodAmounts
from tenants.quotas import Quotas, QuotaSink
from tenants.reclaim import Reclaim
from tenants.seen_pods import SeenPods
from tenants.tenant_settings import QuotaPool


@dataclass(frozen=True, slots=True)
class TenantTables:
    """
    filter, limit : for the pods of all profiles
    reclaim       : for preemption
    sink          : of the watch
    need          : what owners are expected to need; None = it does not matter
    """

    quotas: Quotas
    filter: ElasticQuotaFilter
    limit: QuotaLimit
    reclaim: Reclaim
    sink: QuotaSink
    need: ExpectedNeed | None


def tenant_tables(
    scorer: Scorer, cluster: AssumingCluster, settings: LoopSettings, nodes: OwnNodes, devices: DeviceOptions
) -> TenantTables | None:
    """Attached to the tables of the scorer, under their lock; None = quotas are not heeded. Raises InputError.

    nodes   : that this process places on
    devices : how nodes and pods speak of cards
    """
    options = settings.tenants
    if not options.enabled:
        return None
    ledger = QuotaLedger(cluster.state, PodAmounts(cluster, pod_gpus(devices)), open_gate=ADVICE)
    cards = tuple(filter(None, (*devices.resources, devices.count_resource)))
    cards_of = node_gpus(devices)
    of_nodes = PoolOfNodes(ledger, cluster.state, counts=nodes.are_real, cards_of=cards_of, card_resources=cards)
    pool = of_nodes if options.pool is QuotaPool.NODES else None
    loan_seconds, longest = _loan_seconds(cluster, options.longest_loan), options.longest_loan
    scorer.tables.attach((), ledger)
    need: ExpectedNeed | None = None
    if options.by_forecast:
        seen = SeenPods(cluster.state, lambda namespace: ledger.tree.has_namespace(namespace))
        scorer.tables.attach((), seen)
        need = ExpectedNeed(scorer.tables, ledger, seen, longest_loan=longest, loan_seconds=loan_seconds, pool=pool)
    quotas = Quotas(ledger, need=need, loan_seconds=loan_seconds, pool=pool)
    return TenantTables(
        quotas=quotas,
        filter=ElasticQuotaFilter(quotas),
        limit=QuotaLimit(quotas),
        reclaim=Reclaim(ledger, options, clock=scorer.tables.clock),
        sink=QuotaSink(quotas, scorer.tables.reading, cards),
        need=need,
    )


def _loan_seconds(cluster: AssumingCluster, longest: float) -> Callable[[PodInfo], float]:
    def seconds(pod: PodInfo) -> float:
        runs = cluster.expected_runs
        return min(runs.of(pod, cluster.state.service_key(pod)).long, longest) if runs.is_job(pod) else longest

    return seconds
