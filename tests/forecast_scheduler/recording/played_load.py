"""What played kubelets say, as a function of time that can be integrated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_TURN_SECONDS = 3600.0


def core_seconds(cores: float, swing: float, at: float) -> float:
    """Used since 1970 by who uses cores * (1 + swing * sin) at a time: its integral."""
    turn = 2 * math.pi / _TURN_SECONDS
    return cores * (at + swing * (1 - math.cos(turn * at)) / turn)


def mean_cores(cores: float, swing: float, start: float, end: float) -> float:
    return (core_seconds(cores, swing, end) - core_seconds(cores, swing, start)) / (end - start)


def page_of(
    pods: Sequence[tuple[str, str, float]], at: float, *, swing: float = 0.5, since: Mapping[str, float] | None = None
) -> str:
    """The text of /metrics/resource. pods: (namespace, name, cores), of two containers each

    since : when the counters of a pod began anew, by its name; else 0 at 1970
    """
    lines = []
    for namespace, name, cores in pods:
        began = (since or {}).get(name, 0.0)
        used = core_seconds(cores, swing, at) - (core_seconds(cores, swing, began) if began else 0.0)
        for container, share in (("main", 0.75), ("sidecar", 0.25)):
            labels = f'container="{container}",namespace="{namespace}",pod="{name}"'
            lines.append(f"container_cpu_usage_seconds_total{{{labels}}} {share * used!r} {round(at * 1000)}")
            lines.append(f"container_memory_working_set_bytes{{{labels}}} {share * 1e9 * cores!r} {round(at * 1000)}")
    total = sum(cores for _, _, cores in pods) + 0.2
    lines.append(f"node_cpu_usage_seconds_total {core_seconds(total, swing, at)!r} {round(at * 1000)}")
    lines.append(f"node_memory_working_set_bytes {total * 1.5e9!r} {round(at * 1000)}")
    return "\n".join(lines) + "\n"
