"""VirtualRequest: what a pod is taken to use as long as no metric has seen it; VirtualAvailable: what a node has left
with such pods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats
from base.errors import InputError
from cluster.predicted.node_capacity import amounts_in, amounts_row
from cluster.predicted.pod_bounds import NO_NODE, VIRTUAL_REQUEST_ANNOTATION, Most, bounded_requests
from cluster.predicted.unknown_capacity import limited
from forecast.resources import CPU, MEMORY, RESOURCES
from kube.objects.objects import PodInfo


@dataclass(frozen=True, slots=True)
class VirtualRequest:
    """amount: (n_resources,) base units; source: in words; mistake: what is wrong with the annotation."""

    amount: Floats
    source: str
    mistake: str | None = None


def virtual_request(pod: PodInfo, expected_now: AnyFloats | None, most: Most = NO_NODE) -> VirtualRequest:
    """What the pod is taken to use now.

    expected_now : (n_resources,) by the service's profile in this half hour; None = the service is not known
    most         : that it can use
    """
    if expected_now is not None:
        amount, source = (
            np.nan_to_num(np.asarray(expected_now, dtype=np.float64)),
            "profile of the service at this hour",
        )
    else:
        amount, source = np.zeros(len(RESOURCES)), "requests"
        amount[CPU], amount[MEMORY] = bounded_requests(pod.requests, most)
    annotation = pod.annotations.get(VIRTUAL_REQUEST_ANNOTATION)
    if annotation is None:
        return VirtualRequest(amount, source)
    try:
        said = amounts_row(amounts_in(annotation))
    except InputError as error:
        return VirtualRequest(amount, source, mistake=str(error))
    given = np.isfinite(said)
    return VirtualRequest(
        np.where(given, np.minimum(said, most), amount),
        "annotation" if given.all() else f"annotation, else {source}",
    )


def virtual_available(capacity: AnyFloats, usage: AnyFloats, charged: AnyFloats) -> Floats:
    """capacity - usage at the last metric - virtual requests not yet seen in it: (n_nodes, n_resources).

    May fall below 0. NaN if there is no limit or no measurement. All arguments (n_nodes, n_resources).
    """
    return np.where(limited(capacity), capacity - usage - charged, np.nan)


def live_error(usage: AnyFloats, expected: AnyFloats, unseen: AnyFloats) -> Floats:
    """Usage beyond what was expected of what the metric has seen: (n_nodes, n_resources), NaN = not measured.

    expected : of base and pods, in the window of the metric
    unseen   : the part of it that the metric has not seen yet
    """
    return np.asarray(usage - (expected - unseen), dtype=np.float64)
