"""What owners are expected to need, half hour by half hour, from the pods that their services will have. Pure.

    need(quota, step) = ceil(sum over its services of pods(service, step) * units of one pod)     its own
    a parent          : the sum of its children and its own, at each step
    most_within[n]    = the highest need of the first n steps, by quota and resource

Step 0 is the half hour under way; the steps that follow are half hours of real time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Ints
from tenants.quota_tree import NO_QUOTA, QuotaTree

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class ServicePods:
    """Pods of services, by the quota that they count in.

    row   : (n_services,) quota
    units : (n_services, n_resources) of one pod
    pods  : (n_services, n_steps) expected to be wanted
    held  : (n_services, n_steps) of these, those that follow from pods that have a node now: what ends by a step is not
            in it, what is only to come neither
    """

    row: Ints
    units: Ints
    pods: Floats
    held: Floats


def pods_of_lasting(now: Ints, expected: Floats, follows: Bools, *, half_life: float) -> Floats:
    """(n_services, n_steps) mean number of pods of services that run on and on.

        follows  : expected + max(0, now - expected(0)) * 2^(-step / half_life), and `now` at least in step 0
        else     : now

    Not rounded up to whole pods: what a model learns from counts of pods is rounded already, and errors of services
    even out in the sum of a tenant (`python -m benchmarks.lending`). Pods that are fewer than expected lower nothing:
    the load may come later.

    now       : (n_services,) pods that there are, those that wait included
    expected  : (n_services, n_steps) by the model
    follows   : (n_services,) whether the number of pods follows the load, as the model knows it
    half_life : steps in which half of the pods that are too many has gone
    """
    fading = 0.5 ** (np.arange(expected.shape[1]) / half_life)
    beyond = np.maximum(now - expected[:, 0], 0.0)  # (n_services,)
    pods = np.maximum(expected + beyond[:, None] * fading, 0.0)
    return np.asarray(np.where(follows[:, None], pods, now[:, None].astype(np.float64)))


def pods_of_jobs(expected: Floats, running: Floats) -> Floats:
    """(n_services, n_steps) pods of Job owners: those that the model expects, and no fewer than still run."""
    return np.maximum(expected, running)


def still_running(service: Ints, last: Ints, n_services: int, n_steps: int) -> Floats:
    """(n_services, n_steps) pods that have not ended.

    service : (n_pods,)
    last    : (n_pods,) the step in which each is expected to end, 0 or more
    """
    ends = np.zeros((n_services, n_steps))
    np.add.at(ends, (service, np.minimum(last, n_steps - 1)), 1.0)
    return np.asarray(np.cumsum(ends[:, ::-1], axis=1)[:, ::-1])


def sleeps(expected_before: Floats, least: float = 0.5) -> Bools:
    """(n_services,) whether services that have no pod now may be expected back, since the model expected none in at
    least one of the last half hours. One that it expected all the time is gone.

    expected_before : (n_services, n) pods in the last half hours, the one under way included
    """
    return np.asarray((expected_before < least).any(axis=1))


def needed(tree: QuotaTree, services: ServicePods, further: Floats | None = None) -> Ints:
    """(n_steps, n_quotas, n_resources) units that owners are expected to need.

    further : (n_steps, n_quotas, n_resources) units in addition to those of pods
    """
    own = _amounts(tree, services, services.pods)
    if further is not None:
        own += further
    return with_parents(tree, np.ceil(own - _ROUNDING).astype(np.int64))


def held(tree: QuotaTree, services: ServicePods) -> Ints:
    """(n_steps, n_quotas, n_resources) units of the quotas' own pods that have a node now and still run, or of those
    that came in their place."""
    return np.ceil(_amounts(tree, services, services.held) - _ROUNDING).astype(np.int64)


def with_parents(tree: QuotaTree, own: Ints) -> Ints:
    """(..., n_quotas, n_resources) the same with what all quotas below have."""
    found = own.copy()
    for row in range(len(tree.quotas) - 1, -1, -1):  # children stand after their parents
        if tree.parent[row] != NO_QUOTA:
            found[..., tree.parent[row], :] += found[..., row, :]
    return found


def most_within(need: Ints) -> tuple[Ints, ...]:
    """Item n: (n_quotas, n_resources) the highest need of the first n + 1 steps. While that stays the same, it is the
    same object."""
    highest = np.maximum.accumulate(need, axis=0)
    found: list[Ints] = []
    for step in range(len(highest)):
        same = found and np.array_equal(highest[step], found[-1])
        found.append(found[-1] if same else highest[step])
    return tuple(found)


def _amounts(tree: QuotaTree, services: ServicePods, pods: Floats) -> Floats:
    n_steps = pods.shape[1]
    found = np.zeros((n_steps, len(tree.quotas), len(tree.resources)))
    order = np.argsort(services.row, kind="stable")
    rows, starts = np.unique(services.row[order], return_index=True)
    for row, of_it in zip(rows.tolist(), _parts(order, starts), strict=True):
        found[:, row] = pods[of_it].T @ services.units[of_it].astype(np.float64)
    return found


def _parts(order: Ints, starts: Ints) -> Sequence[Ints]:
    return np.split(order, starts[1:]) if len(starts) else []
