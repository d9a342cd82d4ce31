"""HorizontalPodAutoscalers of many services at once, step by step, by the controller's own rule.

pkg/controller/podautoscaler/replica_calculator.go (GetResourceReplicas; autoscaling/replicas/replicas_needed.py has
GetExternalPerPodMetricReplicas) and horizontal.go (convertDesiredReplicasWithBehaviorRate) of Kubernetes 1.37, with the
default behaviour: every 15 s, tolerance 0.1, upwards at most the double or 4 pods more every 15 s, downwards the
highest wish of the last 300 s. To minReplicas the controller grows at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoscaling.autoscale_settings import AutoscaleOptions, MinReplicasOptions
from autoscaling.replicas.replicas_needed import external_replicas
from base.arrays import Bools, Floats, Ints

STEP_SECONDS = 15.0
TOLERANCE = 0.1
_STABILISATION_STEPS = int(300 / STEP_SECONDS)
_POD_STEP = 4
_TURN_STEPS = round(AutoscaleOptions.act_every / STEP_SECONDS)
_HELD_TURNS = round(MinReplicasOptions.hold / AutoscaleOptions.act_every) + 1


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Load ahead and load now, (n_services, n_steps), by which minReplicas is raised."""

    ahead: Floats
    now: Floats


@dataclass(frozen=True, slots=True)
class Played:
    """Of each service and step: (n_services, n_steps).

    replicas : pods that exist, ready or not
    ready    : pods that take load
    most_ahead : largest part of all load that pods could take which `foreseen` adds to what the load of now needs
    """

    replicas: Ints
    ready: Ints
    most_ahead: float


def play_hpa(
    load: Floats,
    measured: Floats,
    target: Floats,
    startup_steps: Ints,
    *,
    external: Floats | None = None,
    foreseen: Foreseen | None = None,
    tolerance: float = TOLERANCE,
    minimum: int | Ints = 2,
    maximum: int = 200,
) -> Played:
    """Let the controller act on every step.

    load     : (n_services, n_steps) of all pods of a service together
    measured : (n_services, n_steps) load as the metrics API shows it at that step
    target   : (n_services,) load of one pod
    startup_steps : (n_services,) from the creation of a pod until it is ready
    external : (n_services, n_steps) a second metric with the same target as averageValue; the larger wish counts
    foreseen : what raises minReplicas each minute, without a budget; None = it stays
    minimum  : minReplicas, of all or (n_services,)
    """
    n_services, n_steps = load.shape
    ring = np.zeros((n_services, int(startup_steps.max()) + 1), dtype=np.int64)  # pods that become ready, by step
    services = np.arange(n_services)
    ready = np.clip(np.ceil(load[:, 0] / target), minimum, maximum).astype(np.int64)
    wishes = np.tile(ready, (_STABILISATION_STEPS, 1))
    held = np.zeros((_HELD_TURNS, n_services), dtype=np.int64)
    least: Ints = np.broadcast_to(np.asarray(minimum, dtype=np.int64), (n_services,))
    most_ahead = 0.0
    replicas_at, ready_at = np.zeros((2, n_services, n_steps), dtype=np.int64)
    for step in range(n_steps):
        here = step % ring.shape[1]
        ready += ring[:, here]
        ring[:, here] = 0
        waiting = ring.sum(axis=1)
        current = ready + waiting
        wish = _by_resource(measured[:, step] / target, ready, waiting, tolerance)
        if external is not None:
            needed = external[:, step] / target
            wish = np.maximum(wish, external_replicas(needed, current, up=tolerance, down=tolerance))
        if foreseen is not None and step % _TURN_STEPS == 0:
            held[step // _TURN_STEPS % _HELD_TURNS] = _more(foreseen, step, target, current, tolerance)
            least = np.clip(held.max(axis=0), minimum, maximum)
            by_now = external_replicas(foreseen.now[:, step] / target, current, up=tolerance, down=tolerance)
            added = np.maximum(least - np.maximum(by_now, minimum), 0) @ target
            most_ahead = max(most_ahead, float(added / (current @ target)))
        wish = np.clip(wish, least, maximum)
        wishes[step % _STABILISATION_STEPS] = wish
        upwards = np.minimum(wish, np.maximum(2 * current, current + _POD_STEP))
        wanted = np.where(wish >= current, upwards, np.minimum(current, wishes.max(axis=0)))
        wanted = np.where(current < least, least, wanted)
        ring[services, (step + startup_steps) % ring.shape[1]] += np.maximum(wanted - current, 0)
        for service in np.flatnonzero(wanted < current).tolist():
            gone = int(current[service] - wanted[service])
            for position in range(ring.shape[1]):  # pods that are not ready go first, the youngest of them
                column = (step - position) % ring.shape[1]
                taken = min(gone, int(ring[service, column]))
                ring[service, column] -= taken
                gone -= taken
            ready[service] -= gone
        replicas_at[:, step] = ready + ring.sum(axis=1)
        ready_at[:, step] = ready
    return Played(replicas_at, ready_at, most_ahead)


def _by_resource(needed: Floats, ready: Ints, waiting: Ints, tolerance: float) -> Ints:
    """needed: pods that the measured load would fill to their target."""
    current = ready + waiting
    ratio = needed / ready
    # Pods that are not ready yet are taken to use nothing when more are wanted.
    ratio = np.where((waiting > 0) & (ratio > 1), needed / current, ratio)
    reversed_: Bools = (waiting > 0) & (needed / ready > 1) & (ratio < 1)
    counted = np.where(needed / ready > 1, current, ready)
    return np.where(
        (np.abs(ratio - 1) <= tolerance) | reversed_, current, np.ceil(np.round(ratio * counted, 6))
    ).astype(np.int64)


def _more(foreseen: Foreseen, step: int, target: Floats, current: Ints, tolerance: float) -> Ints:
    """Replicas that the load ahead wants where it wants more than that of now, as policies let them grow; else 0."""
    ahead, now = (
        external_replicas(load[:, step] / target, current, up=tolerance, down=tolerance)
        for load in (foreseen.ahead, foreseen.now)
    )
    return np.where(ahead > now, np.minimum(ahead, np.maximum(2 * current, current + _POD_STEP)), 0)
