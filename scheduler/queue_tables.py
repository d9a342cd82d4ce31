"""What queues keep in addition to the scorer's tables, for pods of all profiles: made before the cluster is read.

pods, latest starts --> units and their order
pods, nodes ---------> shares of owners --> whose turn it is
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.declared_devices import node_gpus, pod_gpus
from placement.filters.domain import DOMAIN_LABEL
from placement.node_rule_settings import DeviceOptions
from placement.virtual_node_table import REAL, Claims
from scheduler.queue.queued_pods import Units
from scheduler.quota_queues.fair_order import FairFlows
from scheduler.quota_queues.owner_shares import CardAmounts, Shares
from scheduler.quota_queues.queue_of import QueueOf, QueueOwner
from scheduler.quota_queues.quota_units import FlowSort, QueueUnits
from scheduler.quota_queues.tenant_levels import TenantLevels
from scheduler.schedule_settings import LoopSettings
from scheduler.scheduling_answers import QueueShare
from scorer.scorer import Scorer
from tenants.ledger import QuotaLedger
from tenants.quota_tree import NO_QUOTA


@dataclass(frozen=True, slots=True)
class OwnNodes:
    """The nodes that this process places on. claims: which of them are virtual."""

    domains: frozenset[str]
    claims: Claims

    def in_domain(self, node: NodeInfo) -> bool:
        """Whether it is of a domain that we may use."""
        return node.labels.get(DOMAIN_LABEL, "") in self.domains

    def are_real(self, node: NodeInfo) -> bool:
        """Whether it also is no provider's."""
        return self.in_domain(node) and self.claims.of(node) == REAL


@dataclass(frozen=True, slots=True)
class QueueTables:
    """flows, sort: for the queue, with `units`."""

    queue_of: QueueOf
    shares: Shares
    flows: FairFlows
    sort: FlowSort
    due_of: Callable[[PodInfo], float]
    is_job: Callable[[PodInfo], bool]

    def units(self, gangs: Units | None) -> Units:
        """What is popped as one, of all profiles. gangs: None = PodGroups are not heeded."""
        return QueueUnits(gangs, is_job=self.is_job, due=self.due_of, queue_of=self.queue_of)

    def name_of(self, pod: PodInfo) -> str:
        """`queue/owner` of a pod; '' = no queue takes it."""
        member = self.queue_of.of(pod)
        return "" if member is None else f"{member.queue}/{member.owner}"

    def reports(self, waiting: Iterable[PodInfo]) -> Sequence[QueueShare]:
        """What owners have and wait for, by queue and owner."""
        n_waiting: Mapping[QueueOwner | None, int] = Counter(map(self.queue_of.of, waiting))
        held = {QueueOwner(one.queue, one.owner): one for one in self.shares.report()}
        reports = []
        for member in sorted({one for one in n_waiting if one is not None} | held.keys()):
            queue, share = self.queue_of.queues[member.queue], held.get(member)
            reports.append(
                QueueShare(
                    queue=member.queue,
                    owner=member.owner,
                    order=queue.order.value,
                    weight=queue.weight,
                    share=0.0 if share is None else share.share,
                    running=0 if share is None else share.n_pods,
                    waiting=n_waiting.get(member, 0),
                )
            )
        return reports


def queue_tables(
    scorer: Scorer,
    settings: LoopSettings,
    nodes: OwnNodes,
    devices: DeviceOptions,
    *,
    due_of: Callable[[PodInfo], float],
    job_name: str | None = None,
    ledger: QuotaLedger | None = None,
) -> QueueTables | None:
    """Attached to the tables of the scorer; None = all pods go by priority and age. Raises InputError.

    nodes    : that this process places on
    devices  : how nodes and pods speak of cards
    due_of   : unix seconds by which a pod has to start, inf = whenever
    job_name : schedulerName of pods that are jobs; None = no profile here has such
    ledger   : of the tenants that have a queue; None = none has
    """
    has_queues = job_name is not None or bool(settings.queues)
    if not has_queues and ledger is None:
        return None
    queue_of = QueueOf(
        settings.queues,
        {name: profile for profile, name in settings.scheduler_names.items()},
        tenant_of=None if ledger is None else partial(_tenant_of, ledger),
    )
    means_cards = (*devices.resources, devices.shared_memory_resource, devices.count_resource)
    with scorer.tables.reading() as cluster:
        shares = Shares(
            cluster.state,
            queue_of=queue_of,
            counts=nodes.are_real,
            otherwise=nodes.in_domain,
            cards=CardAmounts(frozenset(filter(None, means_cards)), pod_gpus(devices), node_gpus(devices)),
        )
        scorer.tables.attach((), shares)
    return QueueTables(
        queue_of=queue_of,
        shares=shares,
        flows=FairFlows(
            queue_of.queues,
            shares,
            options=settings,
            tenants=None if ledger is None else TenantLevels(ledger),
            ages=lambda: has_queues or (ledger is not None and bool(ledger.tree.quotas)),
        ),
        sort=FlowSort(queue_of.queues),
        due_of=due_of,
        is_job=lambda pod: pod.scheduler_name == job_name,
    )


def _tenant_of(ledger: QuotaLedger, pod: PodInfo) -> str:
    row = ledger.tree.row_of(pod)
    return "" if row == NO_QUOTA else ledger.tree.name(row)
