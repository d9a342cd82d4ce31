"""What a pod declares to use: its annotation forecast-scheduler.io/virtual-request, {"cpu": "800m", "network": "20M"}.

Any client may write any annotation: amounts are limited by LARGEST here and by the pod's node where they are used
(pod_bounds.py), and an unreadable one counts as none (`live.virtual_request` says so to people).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from base.errors import InputError
from cluster.predicted.capacity import amounts_in
from forecast.pod_bounds import LARGEST
from forecast.resources import RESOURCES
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

VIRTUAL_REQUEST_ANNOTATION = ANNOTATION_PREFIX + "virtual-request"

DeclaredAmounts = tuple[tuple[int, float], ...]
"""(position in RESOURCES, base units) of each resource that is named, by position."""


def declared_amounts(pod: PodInfo) -> DeclaredAmounts:
    """The amounts that the pod declares; empty without an annotation that can be read."""
    annotation = pod.annotations.get(VIRTUAL_REQUEST_ANNOTATION)
    return () if annotation is None else _parsed(annotation)


@lru_cache(maxsize=1024)
def _parsed(annotation: str) -> DeclaredAmounts:
    try:
        said = amounts_in(annotation)
    except InputError:
        return ()
    return tuple(
        (r, float(np.minimum(said[one.name], LARGEST[r]))) for r, one in enumerate(RESOURCES) if one.name in said
    )
