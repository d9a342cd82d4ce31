"""Requests in quantities that people write: 350m, 1230m, 2, 640Mi, 3Gi. Always rounded up."""

from __future__ import annotations

import math
from typing import Final

MI: Final = 2.0**20
_CPU_STEPS: Final = ((0.1, 0.005), (4.0, 0.01), (math.inf, 0.05))
"""Up to so many cores, in steps of so many."""
_MEMORY_STEPS: Final = ((64 * MI, MI), (1024 * MI, 16 * MI), (8192 * MI, 64 * MI), (math.inf, 256 * MI))
LEAST_CORES: Final = 0.01
LEAST_BYTES: Final = 16 * MI
_ALMOST: Final = 1e-9
"""What sums of floats may be above a step without the next one being meant."""


def readable_cores(cores: float) -> float:
    """The next readable number of cores, at least 10m."""
    return max(_up(cores, _CPU_STEPS), LEAST_CORES)


def readable_bytes(count: float) -> float:
    """The next readable number of bytes, at least 16Mi."""
    return max(_up(count, _MEMORY_STEPS), LEAST_BYTES)


def cpu_text(cores: float) -> str:
    """A quantity of CPU: whole cores, else millicores, rounded up to one."""
    milli = math.ceil(cores * 1000 - 1e-6)
    return str(milli // 1000) if milli % 1000 == 0 and milli else f"{milli}m"


def memory_text(count: float) -> str:
    """A quantity of memory: Gi or Mi where it is a whole number of them, else bytes."""
    whole = math.ceil(count - _ALMOST)
    for size, suffix in ((2**30, "Gi"), (2**20, "Mi")):
        if whole and whole % size == 0:
            return f"{whole // size}{suffix}"
    return str(whole)


def _up(value: float, steps: tuple[tuple[float, float], ...]) -> float:
    step = next(step for limit, step in steps if value <= limit)
    return math.ceil(value / step - _ALMOST) * step
