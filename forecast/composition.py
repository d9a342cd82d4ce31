"""From services to nodes: the load of a node as the sum over the pods that sit on it.

For the pods on a node, with c = number of pods of service s on it in slot t (docs/understand/model.md, "Reading it"):

    mean(t)     = base(t) + sum_s c u_s(t)
    variance(t) = base_variance(t) + sum_s (c own_s(t)^2 + c^2 shared_s(t)^2) + (cluster_std * mean(t))^2
    std(t)      = max(sqrt(variance(t)), 0.01 mean(t))

own errors of single pods average out, errors shared by the replicas of a service do not, and errors shared by the
whole cluster do not average out at all. Treating all of them as independent made 0.95 bounds cover 40 % of node peaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import Placements

_LEAST_ERROR = 0.01
"""Standard deviation of a node's forecast, at least, as a share of its mean load.

Prometheus scrapes a counter every 15 to 60 s. A half-hour mean therefore misses up to one interval of 1,800 s:
1 to 3 %.
A smaller error is an accident of the sample. Divided by it, a z loses all meaning.
"""

_PAIRS_PER_BLOCK = 1_000
"""(node, service) pairs expanded to curves at once: 1,000 pairs x 1,344 slots x 8 bytes = 11 MB, several times."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """Forecast of one resource on every node: mean and standard deviation, both (n_nodes, n_slots)."""

    mean: Floats
    std: Floats


def node_load(
    placements: Placements,
    usage: AnyFloats,
    own_variance: AnyFloats,
    shared_variance: AnyFloats,
    base: AnyFloats,
    base_variance: AnyFloats,
    cluster_std: float,
) -> NodeLoad:
    """Mean and spread of one resource on every node, for pods that come and go as `placements` says.

    usage, own_variance, shared_variance : (n_services, n_slots), of one pod
    base, base_variance                  : (n_nodes, n_slots)
    cluster_std                          : error common to all services, as a share of the load
    NaN in usage (nothing known) counts as nothing. A base may be negative where live usage is below the forecast; the
    mean of the node is never below 0.
    """
    mean = np.array(base, dtype=np.float64)
    variance = np.array(base_variance, dtype=np.float64)
    n_slots = mean.shape[1]
    for nodes, services, counts in _count_curves(placements, n_slots):
        np.add.at(mean, nodes, counts * np.nan_to_num(usage[services]))
        spread = counts * np.nan_to_num(own_variance[services])
        spread += counts**2 * np.nan_to_num(shared_variance[services])
        np.add.at(variance, nodes, spread)
    np.maximum(mean, 0.0, out=mean)
    return with_common_error(mean, variance, cluster_std)


def with_common_error(mean: Floats, variance: Floats, cluster_std: float) -> NodeLoad:
    """Mean and spread of nodes, with the error that all services have in common.

    mean, variance : (n_nodes, n_slots) sums over pods and base load, without that error; not changed
    cluster_std    : its standard deviation, as a share of the load
    """
    std = (cluster_std * mean) ** 2
    std += variance
    np.sqrt(std, out=std)
    return NodeLoad(mean, np.maximum(std, _LEAST_ERROR * mean))


def _count_curves(placements: Placements, n_slots: int) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Blocks of (node, service) pairs with their number of pods per slot: (n,), (n,), (n, n_slots).

    One after the other: 40,000 pairs over a week are 100 MB together.
    """
    n_services = int(placements.service.max(initial=-1)) + 1
    pair = placements.node * max(n_services, 1) + placements.service
    pairs, run_pair = np.unique(pair, return_inverse=True)
    order = np.argsort(run_pair, kind="stable")
    for start in range(0, len(pairs), _PAIRS_PER_BLOCK):
        stop = min(start + _PAIRS_PER_BLOCK, len(pairs))
        runs = order[np.searchsorted(run_pair[order], start) : np.searchsorted(run_pair[order], stop)]
        steps = np.zeros((stop - start, n_slots + 1))
        np.add.at(steps, (run_pair[runs] - start, placements.first[runs]), 1.0)
        np.add.at(steps, (run_pair[runs] - start, placements.end[runs]), -1.0)
        counts = np.cumsum(steps, axis=1)[:, :n_slots]
        block = pairs[start:stop]
        yield block // max(n_services, 1), block % max(n_services, 1), counts


def bound_at(load: NodeLoad, z: AnyFloats | float) -> Floats:
    """Load of each node in each slot, z standard deviations above the mean and never below 0: (n_nodes, n_slots).

    z : of all nodes, or (n_nodes, 1)
    """
    return np.asarray(np.maximum(load.mean + z * load.std, 0.0))


def peak_at(load: NodeLoad, z: AnyFloats | float) -> Floats:
    """Peak of each node on each day at z standard deviations above the mean: (n_nodes, n_days).

    A bound of every slot is not a bound of the day's peak; `required_z` finds the z that makes it one.
    """
    n_nodes = load.mean.shape[0]
    return np.asarray(bound_at(load, z).reshape(n_nodes, -1, SLOTS_PER_DAY).max(axis=2))


def plausible_z(z: AnyFloats, quantiles: Sequence[float]) -> Floats:
    """Limit the z of each quantile of a day's peak to what any distribution allows, and order them by quantile.

    Slot errors with mean 0 and the stated standard deviation satisfy Cantelli's inequality,
    P(error >= k std) <= 1 / (1 + k^2). For the quantile q of the highest of 48 slots this gives

        -sqrt((1 - q) / q)  <=  z_q  <=  sqrt(48 / (1 - q) - 1)

    (lower: the slot of the highest mean alone; upper: union bound over the slots). Values for 0.5: -1 and 9.7; for
    0.95: 31. A z beyond these says that forecast and measurement disagree (nodes that use less than the sum of their
    pods, say): no bound follows from it. A bound (q > 0.5) is in addition never below the expected curve: its z >= 0.

    z         : (..., n_quantiles), NaN counts as 0
    quantiles : ascending, each in (0, 1)
    Returns (..., n_quantiles), finite.
    """
    q = np.asarray(quantiles, dtype=np.float64)
    lowest = np.where(q > 0.5, 0.0, -np.sqrt((1 - q) / q))
    limited = np.clip(np.nan_to_num(np.asarray(z, dtype=np.float64)), lowest, np.sqrt(SLOTS_PER_DAY / (1 - q) - 1))
    return np.asarray(np.maximum.accumulate(limited, axis=-1))


def bound_z(z: AnyFloats, node_z: AnyFloats, quantiles: Sequence[float]) -> Floats:
    """The z of single nodes' bounds, limited as `plausible_z` limits that of all: (n_nodes, n_resources).

    z      : (n_nodes, n_resources)
    node_z : (n_resources, n_quantiles) of all nodes, for the median that no bound is below
    """
    of_nodes = np.tile(np.asarray(node_z, dtype=np.float64), (len(z), 1, 1))
    of_nodes[..., -1] = z
    return plausible_z(of_nodes, quantiles)[..., -1]


def required_z(load: NodeLoad, actual: AnyFloats) -> Floats:
    """The smallest z at which `peak_at` reaches the peak that really came: (n_nodes, n_days), NaN where unknown.

    max_t(mean + z std) >= peak  <=>  z >= min_t (peak - mean_t) / std_t, so the quantile of these over
    nodes and days is the calibrated z (split-conformal, Vovk et al. 2005, with the node-day as the unit).

    actual : (n_nodes, n_slots) usage that came; NaN = not measured
    Without any spread the quotient is as large as its sign allows; `plausible_z` limits what is published.
    """
    shape = (load.mean.shape[0], -1, SLOTS_PER_DAY)
    measured = np.isfinite(actual).reshape(shape)
    peak = np.where(measured, np.nan_to_num(actual).reshape(shape), -np.inf).max(axis=2)
    std = np.maximum(load.std.reshape(shape), np.finfo(np.float32).tiny)
    z = ((peak[..., None] - load.mean.reshape(shape)) / std).min(axis=2)
    return np.where(measured.mean(axis=2) >= 0.5, z, np.nan)
