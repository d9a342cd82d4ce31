"""What the GPU profile keeps in addition to the scorer's tables, made from settings: made before the cluster is read.

nodes, pods --> costs of landing by shape of pods, what idle cards need
pods -----------> shapes that come, trainings
claims --------> filter, what is allocated

Cards, their types, groups and topology are rules for every profile: placement/node_rules.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube.objects.objects import NodeInfo, PodInfo
from placement.devices.declared_devices import PodGpus, node_gpus, pod_gpus
from placement.filters.domain import DOMAIN_LABEL
from placement.node_rules import NodeRules
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.dynamic_resources import DynamicResources
from profiles.gpu.fragmentation.balanced import Balanced
from profiles.gpu.fragmentation.cost_table import CostTable, Judge
from profiles.gpu.fragmentation.fragmentation_preference import Fragmentation, MakeJudge
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.live_mix import LiveMix
from profiles.gpu.fragmentation.packing_cost import Packing
from profiles.gpu.fragmentation.pod_shapes import PodShape, PodShapes, ShapeMix
from profiles.gpu.gpu_settings import GpuOptions, IdleCpuOptions, TideOptions
from profiles.gpu.idle_cpu.gpu_node_pods import GpuNodePods
from profiles.gpu.idle_cpu.idle_cpu import IdleCpu, gap_of
from profiles.gpu.idle_cpu.offline_pods import OfflinePods, offline_pods
from profiles.gpu.profile import GPU
from profiles.gpu.tide.gpu_holders import TideTable, pool_of
from profiles.gpu.tide.tide_filter import TideRoom
from profiles.online.colocation_loop import Colocation
from scheduler.handle import Handle


@dataclass(frozen=True, slots=True)
class GpuTables:
    """What filters, preferences, scores and threads of the profile stand on. rules: of every profile."""

    rules: NodeRules
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


def gpu_tables(handle: Handle, ours: GpuOptions, colocation: Colocation) -> GpuTables:
    """Return the tables, which follow nothing yet. Raises InputError."""
    scorer, cluster, settings, rules = handle.scorer, handle.cluster, handle.settings, handle.rules
    state, clock = cluster.state, scorer.tables.clock
    name, domains = settings.scheduler_names[GPU], {settings.domain, *settings.share_nodes}
    devices, options = rules.devices, rules.devices.options

    def is_our_node(node: NodeInfo) -> bool:
        return node.labels.get(DOMAIN_LABEL, "") in domains

    shapes = PodShapes(devices)

    def shape_of(pod: PodInfo) -> PodShape | None:
        shape = shapes.of(pod)
        return shape if shape.count or pod.scheduler_name == name else None

    live_mix = LiveMix(state, shape_of, clock=clock)
    fragmentation = Fragmentation(state, devices, shapes, live_mix, CostTable(state, devices), judge_maker(ours))
    devices.choosers.append(fragmentation.device_for)
    offline = offline_pods(ours, colocation.options, options)
    idle_options = ours.idle_cpu.replace(evict=ours.idle_cpu.evict and not settings.dry_run)
    node_pods = GpuNodePods(cluster, offline)
    gpus_of = pod_gpus(options)
    tiding = ours.tide.replace(dry_run=ours.tide.dry_run or settings.dry_run)
    tide = TideTable(
        state,
        pod_gpus=gpus_of,
        node_gpus=node_gpus(options, lambda node: slice_cards.of(node).for_names),
        pool_of=pool_of(options, ours.tide.pool_label, is_our_node),
        gangs=handle.gangs,
    )
    claims = DynamicResources(
        handle.session,
        handle.view(tide),
        DraTable(state, scorer.tables.reading, handle.class_resources),
        keep=cluster.keep,
        is_assumed=cluster.assumed.__contains__,
        clock=clock,
    )
    slice_cards = claims.slice_cards(options.resources)
    devices.offers.append(slice_cards.offered)

    def cards_changed(node: str) -> None:
        if (row := state.row_of.get(node)) is not None:
            devices.offer_changed(row)
            tide.node_changed(row)

    slice_cards.on_change.append(cards_changed)
    return GpuTables(
        rules=rules,
        live_mix=live_mix,
        fragmentation=fragmentation,
        claims=claims,
        offline=offline,
        node_pods=node_pods,
        idle_cpu=IdleCpu(idle_options, offline, node_pods, devices, colocation.gap(gap_of(colocation.options))),
        idle_cpu_options=idle_options,
        tide=tide,
        tide_room=TideRoom(tide, gpus_of, tiding, clock=clock),
        tide_options=tiding,
        pod_gpus=gpus_of,
    )


def judge_maker(settings: GpuOptions) -> MakeJudge:
    """Return what makes the judge of landing costs, by `placement` of the settings."""

    def balanced(mix: ShapeMix, models: Sequence[str], nodes: NodeStates) -> Judge:
        return Balanced(models)

    if settings.placement == "balanced":
        return balanced
    import scipy.optimize  # noqa: F401  half a second, before the first pod waits for it

    return Packing
