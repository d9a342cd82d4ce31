"""From settings to the options of the GPU profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from forecast_scheduler.gpu_settings import GpuSettings
from placement.card_types.listed_cards import asks_for_cards
from placement.devices.options import DeviceOptions
from scheduler.profiles.gpu.dra.options import DraOptions
from scheduler.profiles.gpu.fragmentation.balanced import Balanced, BalanceWeights
from scheduler.profiles.gpu.fragmentation.cost_table import Judge
from scheduler.profiles.gpu.fragmentation.live_mix import MixOptions
from scheduler.profiles.gpu.fragmentation.nodes import NodeStates
from scheduler.profiles.gpu.fragmentation.packing import Packing
from scheduler.profiles.gpu.fragmentation.preference import MakeJudge
from scheduler.profiles.gpu.fragmentation.shapes import ShapeMix
from scheduler.profiles.gpu.idle_cpu.offline import OfflinePods
from scheduler.profiles.gpu.idle_cpu.options import IdleCpuOptions, PlainPods
from scheduler.profiles.gpu.tide.options import TideOptions

__all__ = [
    "dra_options",
    "idle_cpu_options",
    "judge_maker",
    "mix_options",
    "offline_pods",
    "tide_options",
]

_GIB: Final = 2.0**30


def mix_options(settings: GpuSettings) -> MixOptions:
    """Which pods are expected."""
    ours = settings.mix
    return MixOptions(half_life=ours.half_life, most_shapes=ours.most_shapes, drift=ours.drift)


def judge_maker(settings: GpuSettings) -> MakeJudge:
    """What nodes cost by."""
    weights = BalanceWeights(cpu=settings.balance.cpu, memory=settings.balance.memory, gpu=settings.balance.gpu)

    def balanced(mix: ShapeMix, models: Sequence[str], nodes: NodeStates) -> Judge:
        return Balanced(weights, models)

    if settings.placement == "balanced":
        return balanced
    import scipy.optimize  # noqa: F401  half a second, before the first pod waits for it

    return Packing


def dra_options(settings: GpuSettings) -> DraOptions:
    """Of claims."""
    ours = settings.dra
    return DraOptions(
        most_steps=ours.most_steps, write_seconds=ours.write_timeout, binding_seconds=ours.binding_timeout
    )


def idle_cpu_options(settings: GpuSettings, *, dry_run: bool) -> IdleCpuOptions:
    """Who may use idle cores."""
    ours = settings.idle_cpu
    return IdleCpuOptions(
        priority_below=ours.priority_below,
        ceiling=ours.ceiling,
        hours=ours.hours,
        cores_per_gpu=ours.cores_per_gpu,
        memory_per_gpu=None if ours.memory_per_gpu is None else ours.memory_per_gpu * _GIB,
        plain_pods=PlainPods(ours.plain_pods),
        evict=ours.evict,
        lead_seconds=ours.lead,
        slack=ours.slack,
        dry_run=dry_run,
    )


def offline_pods(settings: GpuSettings, options: DeviceOptions) -> OfflinePods:
    """Which pods may use idle cores of GPU nodes. options: how pods ask for cards."""

    return OfflinePods(
        lambda pod: asks_for_cards(pod, options),
        settings.scheduler_name,
        settings.idle_cpu.priority_below,
    )


def tide_options(settings: GpuSettings, *, dry_run: bool) -> TideOptions:
    """The settings; in a dry run of the whole process the tide is one, too."""
    return settings.tide.replace(dry_run=dry_run or settings.tide.dry_run)
