"""Predicted load of some nodes with its spread, half hour by half hour: what people see, and bounds are taken from.

The same sums as a backtest makes (`forecast.composition`), over the pods that are on the nodes now. Placement reads
`cluster.predicted.load` instead, which weighs last week's raw curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from cluster.predicted.load_parts import NodeBases
from cluster.predicted.pod_profiles import ProfileKey, Profiles
from cluster.predicted.predicted_cluster import PredictedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import NodeLoad, bound_at, peak_at, with_common_error
from forecast.resources import RESOURCES

_PAIRS_AT_ONCE = 512
"""(node, profile) pairs expanded to curves at once: 512 x 5 resources x 336 half hours x 8 bytes = 7 MB."""


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """What the curves of some nodes are made of: copies, so that the sums can be done while the tables change.

    names, capacity : (n_nodes,), (n_nodes, n_resources) of the nodes
    assumed         : (n_nodes, n_resources) whether the trainer assumed the capacity
    error           : (n_nodes, n_resources) usage now beyond what was expected, 0 = not measured
    node, profile, pods : (n_pairs,) position in `names`, position in `keys`, and how many
    keys, replicas  : (n_profiles,)
    """

    names: tuple[str, ...]
    capacity: Floats
    assumed: Bools
    error: Floats
    node: Ints
    profile: Ints
    pods: Ints
    keys: tuple[ProfileKey, ...]
    replicas: Floats


@dataclass(frozen=True, slots=True)
class NodeCurves:
    """Per resource, mean and standard deviation of nodes over local days: (n_nodes, n_days * 48) each.

    Fewer columns where only some slots were asked for, of which there are no daily peaks then.

    z : (n_nodes, n_resources, n_quantiles) standard deviations from the mean curve to the daily peak
    """

    days: tuple[date, ...]
    loads: tuple[NodeLoad, ...]
    z: Floats

    def peaks(self, quantile: int) -> Floats:
        """Daily peaks: (n_nodes, n_resources, n_days)."""
        return np.stack([peak_at(load, self.z[:, r, quantile, None]) for r, load in enumerate(self.loads)], axis=1)

    def curve(self, quantile: int) -> Floats:
        """Mean + z standard deviations, at least 0: (n_nodes, n_resources, n_days * 48)."""
        return np.stack([bound_at(load, self.z[:, r, quantile, None]) for r, load in enumerate(self.loads)], axis=1)

    def mean(self) -> Floats:
        """(n_nodes, n_resources, n_days * 48)."""
        return np.stack([load.mean for load in self.loads], axis=1)


def gather(
    predicted: PredictedCluster,
    rows: Sequence[int],
    extra: Sequence[int | None] = (),
    *,
    as_believed: bool = True,
) -> NodeInputs:
    """Copy what the curves of the nodes in `rows` need.

    extra       : for each row a profile of which one more pod is there, or None
    as_believed : False = with pods where they sit, wherever else they are believed to be
    """
    pods_on = predicted.load.pods_on if as_believed else predicted.pods_sitting_on
    # What pods of one-off owners bring is in the base of the nodes, those included that are there now.
    pairs = [
        (position, profile, round(pods))
        for position, row in enumerate(rows)
        for profile, pods in pods_on(row).items()
        if (service := predicted.keys[profile].service) is None or not service.is_group
    ]
    pairs += [(position, profile, 1) for position, profile in enumerate(extra) if profile is not None]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 3)
    profiles, profile = np.unique(table[:, 1], return_inverse=True)
    return NodeInputs(
        names=tuple(predicted.name_of(row) for row in rows),
        capacity=predicted.capacity[list(rows)],
        assumed=predicted.capacity_assumed[list(rows)],
        error=predicted.load.live_error(rows),
        node=table[:, 0],
        profile=profile,
        pods=table[:, 2],
        keys=tuple(predicted.keys[number] for number in profiles.tolist()),
        replicas=np.array([predicted.replicas_used(number) for number in profiles.tolist()]),
    )


def node_curves(
    profiles: Profiles,
    bases: NodeBases,
    inputs: NodeInputs,
    days: tuple[date, ...],
    *,
    fading: AnyFloats | None = None,
    widen: float = 1.0,
    slots: slice = slice(None),
) -> NodeCurves:
    """Curves of nodes over local days.

    fading : (n_days * 48,) share of the live error that is left in each half hour; None = none
    widen  : factor on the standard deviations, for a model past its time
    slots  : half hours that are wanted, counted from midnight of days[0]
    """
    n_nodes, n_slots = len(inputs.names), len(range(len(days) * SLOTS_PER_DAY)[slots])
    usage = profiles.mean_of(inputs.keys, inputs.replicas, days)[:, :, slots]
    stds = profiles.std_of(inputs.keys, inputs.replicas, days[0])
    base = np.zeros((n_nodes, len(RESOURCES), n_slots))
    base_std = np.zeros((n_nodes, len(RESOURCES), SLOTS_PER_DAY))
    for i, (name, capacity) in enumerate(zip(inputs.names, inputs.capacity, strict=True)):
        base[i], base_std[i] = bases.mean(name, capacity, days)[:, slots], bases.std(name, capacity)
    if fading is not None:
        base += inputs.error[:, :, None] * fading[slots]
    tiled, running, model = (1, 1, len(days)), profiles.running(inputs.keys, days), profiles.model

    def over_days(of_day: AnyFloats) -> Floats:
        return np.tile(np.asarray(of_day, dtype=np.float64), tiled)[..., slots]

    own, shared, base_variance = ((widen * std.astype(np.float64)) ** 2 for std in (*stds, base_std))
    if running is not None:
        own, shared = (over_days(variance) * running[:, None, slots] for variance in (own, shared))
    pairs = _pairs(inputs)
    mean = np.maximum(base + _sums(pairs, n_nodes, (pairs.pods, usage)), 0.0)
    spread = _sums(pairs, n_nodes, (pairs.pods, own), (pairs.pods**2, shared))
    variance = over_days(base_variance) + spread if running is not None else over_days(base_variance + spread)
    loads = tuple(
        with_common_error(mean[:, r], variance[:, r], widen * float(model.cluster_std[r]))
        for r in range(len(RESOURCES))
    )
    z = np.array([bases.z(name) for name in inputs.names]).reshape(n_nodes, *model.node_z.shape)
    return NodeCurves(days, loads, z)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Distinct nodes and profiles, in the order of nodes: (n_pairs,); first: of each node in `nodes`."""

    profile: Ints
    pods: Floats
    nodes: Ints
    first: Ints


def _pairs(inputs: NodeInputs) -> _Pairs:
    n_profiles = max(len(inputs.keys), 1)
    both, at = np.unique(inputs.node * n_profiles + inputs.profile, return_inverse=True)
    nodes, first = np.unique(both // n_profiles, return_index=True)
    return _Pairs(both % n_profiles, np.bincount(at, inputs.pods, len(both)).astype(np.float64), nodes, first)


def _sums(pairs: _Pairs, n_nodes: int, *terms: tuple[Floats, AnyFloats]) -> Floats:
    """Sums over the profiles on each node: (n_nodes, n_resources, n_slots).

    terms : weights, (n_pairs,), and curves that they are of, (n_profiles, n_resources, n_slots)
    Of some hundred pairs at a time: 40,000 pairs over a week are 500 MB together.
    """
    found = np.zeros((n_nodes, *terms[0][1].shape[1:]))
    first, ends = pairs.first, np.append(pairs.first[1:], len(pairs.profile))
    begin = 0
    while begin < len(first):
        end = max(int(np.searchsorted(ends, first[begin] + _PAIRS_AT_ONCE, side="right")), begin + 1)
        part = slice(first[begin], ends[end - 1])
        for weights, curves in terms:
            each = weights[part, None, None] * curves[pairs.profile[part]]
            found[pairs.nodes[begin:end]] += np.add.reduceat(each, first[begin:end] - first[begin], axis=0)
        begin = end
    return found
