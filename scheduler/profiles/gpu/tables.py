"""What the GPU profile keeps beside the scorer's tables, put together from settings: made before the cluster is read.

nodes, pods --> costs of landing by shape of pods, what idle cards need beside them
pods -----------> shapes that come, trainings
claims --------> filter, what is allocated

Cards, their types, groups and topology are rules for every profile: placement/node_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kubernetes.client import ApiClient

from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import ResourceSource
from kube.objects.objects import NodeInfo, PodInfo
from kube.session.api_session import ApiSession
from placement.filters.domain import DOMAIN_LABEL
from placement.filters.filter import ClusterView, Filter
from placement.index.index import PlacementIndex
from placement.node_rules import NodeRules
from placement.plugins import AwaitedPreBind, NodePreference, PostFilter, PreEnqueue, Score
from scheduler.gangs.directory import GangDirectory
from scheduler.profiles.gpu.dra.plugin import DynamicResources
from scheduler.profiles.gpu.dra.source import dra_source, dra_subscriptions
from scheduler.profiles.gpu.dra.table import DraTable
from scheduler.profiles.gpu.fragmentation.cost_table import CostTable
from scheduler.profiles.gpu.fragmentation.live_mix import LiveMix
from scheduler.profiles.gpu.fragmentation.pod_shapes import PodShapes
from scheduler.profiles.gpu.fragmentation.preference import Fragmentation
from scheduler.profiles.gpu.fragmentation.shapes import PodShape
from scheduler.profiles.gpu.from_options import judge_maker, offline_pods, with_dry_run
from scheduler.profiles.gpu.idle_cpu.gpu_node_pods import GpuNodePods
from scheduler.profiles.gpu.idle_cpu.idle_cpu import IdleCpu, gap_of
from scheduler.profiles.gpu.idle_cpu.offline import OfflinePods
from scheduler.profiles.gpu.idle_cpu.options import IdleCpuOptions
from scheduler.profiles.gpu.profile import GPU
from scheduler.profiles.gpu.tide.cards import node_gpus, pod_gpus, pool_of
from scheduler.profiles.gpu.tide.options import TideOptions
from scheduler.profiles.gpu.tide.room import TideRoom
from scheduler.profiles.gpu.tide.table import PodGpus, TideTable
from scheduler.profiles.online.colocating import Colocation
from scheduler.settings import ScheduleSettings
from scorer.assuming import AssumingCluster
from scorer.follower import Follower
from scorer.scorer import Scorer

_CLAIMS_WEIGHT: Final = 2
"""Of DynamicResources (getDefaultPlugins in pkg/scheduler/apis/config/v1/default_plugins.go)."""


@dataclass(frozen=True, slots=True)
class GpuTables:
    """
    rules : of every profile
    view  : of the tables, with those of the rules and of the profile that filters read
    """

    rules: NodeRules
    view: ClusterView
    live_mix: LiveMix
    fragmentation: Fragmentation
    claims: DynamicResources
    offline: OfflinePods
    node_pods: GpuNodePods
    idle_cpu: IdleCpu
    idle_cpu_options: IdleCpuOptions
    tide: TideTable
    tide_room: TideRoom
    tide_options: TideOptions
    pod_gpus: PodGpus

    # Of the profile

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Beside the standard ones and those of the rules."""
        return (self.claims, self.idle_cpu, self.tide_room)

    @property
    def first(self) -> tuple[NodePreference, ...]:
        """Narrows before types of cards are looked at."""
        return (self.tide_room,)

    @property
    def last(self) -> tuple[NodePreference, ...]:
        """Narrows the nodes that the rules leave."""
        return (self.fragmentation,)

    @property
    def gates(self) -> tuple[PreEnqueue, ...]:
        """Before the queue."""
        return (self.claims,)

    @property
    def post_filters(self) -> tuple[PostFilter, ...]:
        """Before preemption."""
        return (self.claims,)

    @property
    def scores(self) -> tuple[tuple[Score, int], ...]:
        """Beside kube-scheduler's, by its weight of the same plugin."""
        return ((self.claims, _CLAIMS_WEIGHT),)

    @property
    def awaited(self) -> tuple[AwaitedPreBind, ...]:
        """What is written before pods are bound; nothing in a dry run."""
        return (self.claims,) if self.claims.writer is not None else ()

    # Of the process

    def followers(self) -> Iterator[Follower]:
        """In the order in which they are to be attached."""
        yield from (self.live_mix, self.claims.table, self.node_pods, self.tide)

    def listen(self, changed: Callable[[], None], pod_may_go: Callable[[PodInfo], None]) -> None:
        """To be told when something of ours may let pods in that were rejected, or a pod into the queue."""
        self.claims.table.on_room.append(changed)
        self.claims.table.on_claim.append(pod_may_go)

    def read_again(self) -> Callable[[], bool]:
        """Have claims read anew; what is returned tells whether the tables know all that were allocated before."""
        return self.claims.table.read_again()

    def sources(self, api: ApiClient) -> Iterator[ResourceSource]:
        """Follow claims and what drivers offer, as far as they are installed; not started yet. Other pods are placed
        without them, pods with claims once all claims were listed."""
        yield dra_source(api, self.claims.table)

    def subscriptions(self) -> tuple[Subscription[Any], ...]:
        """Resources that only these tables read: claims, and what drivers offer."""
        return dra_subscriptions(self.claims.table)


def gpu_tables(
    scorer: Scorer,
    settings: ScheduleSettings,
    rules: NodeRules,
    index: PlacementIndex,
    gangs: GangDirectory | None,
    colocation: Colocation,
    session: ApiSession | None,
    class_resources: dict[str, str],
) -> GpuTables:
    """Attached to the tables of the scorer, after the index and the rules. Raises InputError.

    gangs   : None = PodGroups are not heeded
    class_resources : is kept up to date: name of the DeviceClass by extended resource, of those that have one
    session : that claims are written with; None = they are not
    """
    with scorer.reading() as cluster:
        made = _gpu_tables(scorer, cluster, settings, rules, index, gangs, colocation, session, class_resources)
        for follower in made.followers():
            scorer.attach((), follower)
    return made


def _gpu_tables(
    scorer: Scorer,
    cluster: AssumingCluster,
    settings: ScheduleSettings,
    rules: NodeRules,
    index: PlacementIndex,
    gangs: GangDirectory | None,
    colocation: Colocation,
    session: ApiSession | None,
    class_resources: dict[str, str],
) -> GpuTables:
    ours, state, clock = settings.gpu, cluster.state, scorer.clock
    name, domains = settings.scheduler_names[GPU], {settings.domain, *settings.share_nodes}
    devices, options = rules.devices, rules.devices.options

    def is_our_node(node: NodeInfo) -> bool:
        return node.labels.get(DOMAIN_LABEL, "") in domains

    shapes = PodShapes(devices)

    def shape_of(pod: PodInfo) -> PodShape | None:
        shape = shapes.of(pod)
        return shape if shape.count or pod.scheduler_name == name else None

    live_mix = LiveMix(state, shape_of, ours.mix, clock=clock)
    fragmentation = Fragmentation(
        state, devices, shapes, live_mix, CostTable(state, devices), judge_maker(ours), slack=ours.slack
    )
    rules.choose_devices_by(fragmentation.device_for)
    offline, idle_options = offline_pods(ours, options), with_dry_run(ours.idle_cpu, settings.dry_run)
    node_pods = GpuNodePods(cluster, offline)
    gpus_of, tiding = pod_gpus(options), with_dry_run(ours.tide, settings.dry_run)
    tide = TideTable(
        state,
        pod_gpus=gpus_of,
        node_gpus=node_gpus(options, lambda node: slice_cards.of(node).for_names),
        pool_of=pool_of(options, ours.tide.pool_label, is_our_node),
        gangs=gangs,
    )
    view = ClusterView(cluster, index, (*rules.tables, tide))
    claims = DynamicResources(
        session,
        view,
        DraTable(state, scorer.reading, class_resources),
        ours.dra,
        keep=cluster.keep,
        is_assumed=cluster.assumed.__contains__,
        clock=clock,
    )
    slice_cards = claims.slice_cards(options.resources)
    devices.offered = slice_cards.offered

    def cards_changed(node: str) -> None:
        if (row := state.row_of.get(node)) is not None:
            devices.offer_changed(row)
            tide.node_changed(row)

    slice_cards.on_change.append(cards_changed)
    return GpuTables(
        rules=rules,
        view=view,
        live_mix=live_mix,
        fragmentation=fragmentation,
        claims=claims,
        offline=offline,
        node_pods=node_pods,
        idle_cpu=IdleCpu(idle_options, offline, node_pods, devices, colocation.gap(gap_of(idle_options))),
        idle_cpu_options=idle_options,
        tide=tide,
        tide_room=TideRoom(tide, gpus_of, tiding, clock=clock),
        tide_options=tiding,
        pod_gpus=gpus_of,
    )
