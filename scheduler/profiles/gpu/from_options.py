"""What the GPU profile makes of its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from placement.card_types.listed_cards import asks_for_cards
from placement.devices.options import DeviceOptions
from scheduler.profiles.gpu.fragmentation.balanced import Balanced
from scheduler.profiles.gpu.fragmentation.cost_table import Judge
from scheduler.profiles.gpu.fragmentation.nodes import NodeStates
from scheduler.profiles.gpu.fragmentation.packing import Packing
from scheduler.profiles.gpu.fragmentation.preference import MakeJudge
from scheduler.profiles.gpu.fragmentation.shapes import ShapeMix
from scheduler.profiles.gpu.idle_cpu.offline import OfflinePods
from scheduler.profiles.gpu.idle_cpu.options import IdleCpuOptions
from scheduler.profiles.gpu.options import GpuOptions
from scheduler.profiles.gpu.tide.options import TideOptions

_Options = TypeVar("_Options", TideOptions, IdleCpuOptions)


def judge_maker(settings: GpuOptions) -> MakeJudge:
    """What nodes cost by."""

    def balanced(mix: ShapeMix, models: Sequence[str], nodes: NodeStates) -> Judge:
        return Balanced(settings.balance, models)

    if settings.placement == "balanced":
        return balanced
    import scipy.optimize  # noqa: F401  half a second, before the first pod waits for it

    return Packing


def offline_pods(settings: GpuOptions, options: DeviceOptions) -> OfflinePods:
    """Which pods may use idle cores of GPU nodes. options: how pods ask for cards."""

    return OfflinePods(
        lambda pod: asks_for_cards(pod, options),
        settings.scheduler_name,
        settings.idle_cpu.priority_below,
    )


def with_dry_run(options: _Options, dry_run: bool) -> _Options:
    """The options; in a dry run of the whole process this part is one, too."""
    return options.replace(dry_run=dry_run or options.dry_run)
