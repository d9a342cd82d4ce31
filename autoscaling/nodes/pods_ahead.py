"""How many pods services will have soon, with the forecast's error: what buffers and the guard both reckon with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaling.services_ahead import ServicesAhead
from base.arrays import Bools, Floats
from cluster.tracking import LIVE_HALF_LIFE_SLOTS
from forecast.calendar import SLOT_MINUTES
from forecast.resources import CPU
from kube.objects.objects import ANNOTATION_PREFIX

BUFFER_LABEL: Final = f"{ANNOTATION_PREFIX}buffer"
"""Label of all that belongs to a buffer, placeholder pods included. Its value names the buffer."""

_HALF_LIFE_SECONDS: Final = 60.0 * SLOT_MINUTES * LIVE_HALF_LIFE_SLOTS
"""Of the difference between the pods that are there and those that were expected; the scorer's for usage."""


@dataclass(frozen=True, slots=True)
class PodsAhead:
    """pods, std : (n_services, n_moments) expected at some moments, and the standard deviation of the error."""

    pods: Floats
    std: Floats


def pods_ahead(ahead: ServicesAhead, now: float, moments: Floats) -> PodsAhead:
    """Pods of each service at some moments, from those that are there now.

    Pods of an autoscaled service change as the forecast does. That there are more or fewer than expected at this moment
    fades with a half-life of six hours. All other services stay as they are.

    moments : (n_moments,) unix seconds, none before `now`
    """
    expected = np.stack([ahead.at(ahead.expected_replicas, float(moment)) for moment in moments], axis=1)
    beyond = ahead.replicas - ahead.at(ahead.expected_replicas, now)  # (n_services,)
    fading = 0.5 ** ((moments - now) / _HALF_LIFE_SECONDS)  # (n_moments,)
    pods = np.maximum(expected + beyond[:, None] * fading, 0.0)
    follows = (ahead.autoscaled & ~is_placeholder(ahead))[:, None]
    # The count follows the load: both have the same relative error.
    load, std = (
        np.stack([ahead.at(curve[:, CPU], float(moment)) for moment in moments], axis=1)
        for curve in (ahead.load, ahead.std)
    )
    relative = np.minimum(std / np.maximum(load, np.finfo(np.float64).tiny), 1.0)
    return PodsAhead(pods=np.where(follows, pods, ahead.replicas[:, None]), std=np.where(follows, pods * relative, 0.0))


def is_placeholder(ahead: ServicesAhead) -> Bools:
    """(n_services,): whether its pods are placeholders of ours."""
    return np.array([BUFFER_LABEL in pod.labels for pod in ahead.examples], dtype=np.bool_)
