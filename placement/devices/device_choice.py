"""Which devices of a node a pod gets by default: pure.

Shares go where the least is left over (best fit, as allocateGPUID in pkg/cache/nodeinfo.go of
gpushare-scheduler-extender chooses), so that whole devices stay whole; whole ones are the first that are free.
"""

from __future__ import annotations

from collections.abc import Sequence

from placement.devices.demand import WHOLE


def best_fit(free: Sequence[int], count: int, wanted: int, whole: int = WHOLE) -> tuple[int, ...] | None:
    """Return `count` devices with `wanted` free each, ascending; None = there are fewer.

    free   : (n_devices,) in thousandths; less than 0 = there is no such device
    wanted : of each of them
    whole  : all of a device; another number where another unit is used
    """
    if wanted == whole:
        whole_ones = [device for device, left in enumerate(free) if left == whole]
        return tuple(whole_ones[:count]) if len(whole_ones) >= count else None
    fitting = [(left, device) for device, left in enumerate(free) if left >= wanted]
    if len(fitting) < count:
        return None
    return tuple(sorted(device for _, device in sorted(fitting)[:count]))


def least_full(free: Sequence[int], count: int) -> tuple[int, ...]:
    """The `count` devices with the most left, or as many as there are, ascending: for pods that sit there although
    nothing fits any more."""
    there = [(-left, device) for device, left in enumerate(free) if left >= 0]
    return tuple(sorted(device for _, device in sorted(there)[:count]))
