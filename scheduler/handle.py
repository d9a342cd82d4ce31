"""What a scheduling process hands to the builders of its profiles, and what they return.

kube-scheduler hands `framework.Handle` to its plugins (pkg/scheduler/framework/interface.go). Ours is made before the
cluster is read, so that the tables of a profile follow it from the first object on. A profile is a folder in profiles/
with a function that returns ProfileParts, and a line in profiles/registry.py. The framework knows none of them:
profiles/schedule_tables.py hands them in.

    settings --> Handle --build--> ProfileParts --> profile (assembly.py), tables (tables.py), upkeep
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.assuming_cluster import AssumingCluster
from cluster.follower import Follower
from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import ResourceSource
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.filters.filter import ClusterView, Filter
from placement.index.index import PlacementIndex
from placement.node_rules import NodeRules
from placement.plugins import NodePreference, PostBind, PostFilter, PreBind, PreEnqueue, Reserve
from placement.scores.node_score import NodeScore
from scheduler.gangs.directory import GangDirectory
from scheduler.process import Process
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue_tables import OwnNodes, QueueTables
from scheduler.schedule_settings import LoopSettings
from scheduler.tenant_tables import TenantTables
from scorer.scorer import Scorer
from serving.threads import Upkeep


@dataclass(frozen=True, slots=True)
class Handle:
    """The process as the builder of a profile finds it, under the lock of the tables.

    rules           : about nodes, for every profile
    gangs           : None = PodGroups are not heeded
    queues          : None = all pods go by priority and age
    tenants         : None = quotas are not heeded
    class_resources : name of the DeviceClass by extended resource, of those that have one; the GPU profile fills it
    session         : writes ResourceClaims; None = they are not written
    """

    scorer: Scorer
    cluster: AssumingCluster
    settings: LoopSettings
    rules: NodeRules
    index: PlacementIndex
    gangs: GangDirectory | None
    nodes: OwnNodes
    queues: QueueTables | None
    tenants: TenantTables | None
    class_resources: dict[str, str]
    session: ApiSession | None

    def view(self, *further: Follower) -> ClusterView:
        """Return the cluster as filters read it, with the tables of the rules and these."""
        return ClusterView(self.cluster, self.index, (*self.rules.tables, *further))


def _no_upkeep(process: Process, queue: SchedulingQueue) -> Upkeep:
    return Upkeep()


def _ignore(changed: Callable[[], None], pod_may_go: Callable[[PodInfo], None]) -> None:
    """Nothing of the profile ever lets pods in that were rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileParts:
    """What a profile has in addition to what all profiles share. See standard_profile and BindingPlugins for the words.

    instead       : filters in place of standard ones of the same name
    first, last   : preferences before and after those of the rules; the order of machine groups comes before all
    view_tables   : that filters read of the view
    followers     : tables that follow the cluster, in the order in which they are attached
    subscriptions : resources that only these tables read; the process follows them
    listen        : is handed what to call when something of the profile may let rejected pods in, or one into the queue
    read_again    : called with the source of the subscriptions when this replica begins to lead: reads anew what
                    another one may have written; what it returns says whether that is done
    standing      : of the profile's pods where victims are chosen: lower goes first; None = their priority
    may_preempt   : of the profile's pods; None = each may
    decided_alone : why one replica has to decide about a pod of the profile wherever it may go, '' = any may; None = of
                    all its pods any may
    upkeep        : makes what goes on around the profile in threads, with the queue of the loop
    keep_up       : does once what these do again and again, for a process without threads
    tables        : the profile's own tables, for code that knows the profile
    """

    instead: Sequence[Filter] = ()
    filters: Sequence[Filter] = ()
    first: Sequence[NodePreference] = ()
    last: Sequence[NodePreference] = ()
    gates: Sequence[PreEnqueue] = ()
    post_filters: Sequence[PostFilter] = ()
    scores: Sequence[tuple[NodeScore, int]] = ()
    reserve: Sequence[Reserve] = ()
    pre_bind: Sequence[PreBind] = ()
    post_bind: Sequence[PostBind] = ()
    view_tables: Sequence[Follower] = ()
    followers: Sequence[Follower] = ()
    subscriptions: Sequence[Subscription[Any]] = ()
    listen: Callable[[Callable[[], None], Callable[[PodInfo], None]], None] = _ignore
    read_again: Callable[[ResourceSource], Callable[[], bool]] | None = None
    standing: Callable[[PodInfo], int] | None = None
    may_preempt: Callable[[PodInfo], bool] | None = None
    decided_alone: Callable[[PodInfo], str] | None = None
    upkeep: Callable[[Process, SchedulingQueue], Upkeep] = _no_upkeep
    keep_up: Callable[[], None] = lambda: None
    tables: object = None
