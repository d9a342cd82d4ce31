"""What the kubelets of the sample's nodes say of CPU and memory: /metrics/resource, with counters of its pods."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from forecast.resources import CPU, MEMORY
from testing.local_cluster.sample import HALF_HOUR, Course, PodCourse, Sample

_CPU, _MEMORY = "cpu_usage_seconds_total", "memory_working_set_bytes"
_CONTAINER: Final = "main"


def kubelet_pages(sample: Sample, clock: Callable[[], float] = time.time) -> Callable[[str], str]:
    """The page of a node by its name, as of now."""
    pods: dict[str, list[PodCourse]] = {}
    for pod in sample.pods:
        pods.setdefault(pod.node, []).append(pod)
    nodes: Mapping[str, Course] = {node.name: node.course for node in sample.nodes}
    used = {id(course): _used(course) for course in [*nodes.values(), *(pod.course for pod in sample.pods)]}

    def page(node: str) -> str:
        now = clock()
        moment, stamp = sample.moment(now), round(now * 1000)
        lines = list[str]()

        def tell(what: str, labels: str, course: Course) -> None:
            usage = course.at(moment)
            if usage is not None:
                row = int(np.searchsorted(course.begins, moment, side="right")) - 1
                seconds = used[id(course)][row] + float(usage[CPU]) * (moment - int(course.begins[row]))
                lines.append(f"{what}_{_CPU}{labels} {seconds!r} {stamp}\n")
                lines.append(f"{what}_{_MEMORY}{labels} {float(usage[MEMORY])!r} {stamp}\n")

        tell("node", "", nodes[node])
        for pod in pods.get(node, ()):
            labels = f'namespace="{pod.namespace}",pod="{pod.name}"'
            tell("container", f'{{container="{_CONTAINER}",{labels}}}', pod.course)
        return "".join(lines)

    return page


def _used(course: Course) -> list[float]:
    """Core-seconds until the beginning of each half hour."""
    of_each = course.usage[:, CPU] * HALF_HOUR
    return [0.0, *np.cumsum(of_each[:-1]).tolist()]
