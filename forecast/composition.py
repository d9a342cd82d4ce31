"""From services to nodes: the load of a node as the sum over the pods that sit on it.

For the pods on a node, with c = number of pods of service s on it in slot t (docs/model.md, "Reading it"):

    mean(t)     = base(t) + sum_s c u_s(t)
    variance(t) = base_variance(t) + sum_s (c own_s(t)^2 + c^2 shared_s(t)^2) + (cluster_std * mean(t))^2

own errors of single pods average out, errors shared by the replicas of a service do not, and errors shared by the
whole cluster do not average out at all. Treating all of them as independent made 0.95 bounds cover 40 % of node peaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import Placements

__all__ = ["NodeLoad", "node_load", "peak_at", "required_z"]

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
    NaN in usage (nothing known) counts as nothing.
    """
    mean = np.array(base, dtype=np.float64)
    variance = np.array(base_variance, dtype=np.float64)
    n_slots = mean.shape[1]
    for nodes, services, counts in _count_curves(placements, n_slots):
        np.add.at(mean, nodes, counts * np.nan_to_num(usage[services]))
        spread = counts * np.nan_to_num(own_variance[services])
        spread += counts**2 * np.nan_to_num(shared_variance[services])
        np.add.at(variance, nodes, spread)
    variance += (cluster_std * mean) ** 2
    return NodeLoad(mean, np.sqrt(variance))


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


def peak_at(load: NodeLoad, z: float) -> Floats:
    """Peak of each node on each day at z standard deviations above the mean: (n_nodes, n_days).

    A bound of every slot is not a bound of the day's peak; `required_z` finds the z that makes it one.
    """
    n_nodes = load.mean.shape[0]
    return np.asarray((load.mean + z * load.std).reshape(n_nodes, -1, SLOTS_PER_DAY).max(axis=2))


def required_z(load: NodeLoad, actual: AnyFloats) -> Floats:
    """The smallest z at which `peak_at` reaches the peak that really came: (n_nodes, n_days), NaN where unknown.

    max_t(mean + z std) >= peak  <=>  z >= min_t (peak - mean_t) / std_t, so the quantile of these over
    nodes and days is the calibrated z (split-conformal, Vovk et al. 2005, with the node-day as the unit).

    actual : (n_nodes, n_slots) usage that came; NaN = not measured
    """
    shape = (load.mean.shape[0], -1, SLOTS_PER_DAY)
    measured = np.isfinite(actual).reshape(shape)
    peak = np.where(measured, np.nan_to_num(actual).reshape(shape), -np.inf).max(axis=2)
    std = np.maximum(load.std.reshape(shape), 1e-9 * np.maximum(1e-30, load.mean.max()))
    z = ((peak[..., None] - load.mean.reshape(shape)) / std).min(axis=2)
    return np.where(measured.mean(axis=2) >= 0.5, z, np.nan)
