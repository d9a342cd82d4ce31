"""What is swept: lines of utilisation against violations for each forecaster, on one resource of one trace.

A cell packs a part of the pods, drawn by a seed, onto nodes of one size and plays back the day, at each midnight. Pods
that use more than half a node are left out. A line is a list of outcomes, means over the midnights, by its setting:

    FORECASTERS      the packed quantile of each pod, 0.1 to 0.99; beyond these ends, a margin on top of them
    TRUE_FUTURE      the margin: nodes are filled up to this share of their capacity
    BY_NODE          standard deviations above the mean of the node, as our model composes them
    `quantile_line`  the margin, with one packed quantile of our pods; the same for `node_line`, `peak_line`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.decision_days import FORECASTERS, Days
from benchmarks.decision_forecasters import OURS, QUANTILES
from benchmarks.decision_packing import Demand, Outcome, Rule, mean_outcome, outcome, pack
from forecast.model import PEAK_QUANTILES
from forecast.resources import RESOURCES

TRUE_FUTURE, BY_NODE = "true future", "forecast, by node"
PACKED = (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
Z = (0.0, 0.5, 1.0, 1.645, 2.33, 3.0, 4.0)

_MARGINS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.7, 2.2, 3.0)
_LOOSER, _TIGHTER = _MARGINS[:8:-1], _MARGINS[7::-2]
NO_MARGIN = _MARGINS.index(1.0)
"""Position of the outcome without a margin in the lines whose margin is swept."""

_PODS_PER_NODE, _FEWEST_NODES = 5, 4
_LARGEST_POD = 0.5


@dataclass(frozen=True, slots=True)
class Cell:
    """All lines of one resource of one trace with one seed.

    best  : utilisation that the true future reaches without a margin
    """

    trace: str
    resource: str
    n_pods: int
    best: float
    lines: dict[str, list[Outcome]]


def quantile_line(quantile: float) -> str:
    """Name of the line of one packed quantile of our pods, whose margin is swept."""
    return f"pods {quantile:g}"


def node_line(z: float) -> str:
    """Name of the line of one z on our nodes, whose margin is swept."""
    return f"node z {z:g}"


def node_bound_line(quantile: float) -> str:
    """Name of the line of the published z of this quantile of a node's daily peak, whose margin is swept."""
    return f"node_z {quantile:g}"


def peak_line(quantile: float) -> str:
    """Name of the line of pods' curves raised to this quantile of their daily peak, whose margin is swept."""
    return f"pod peaks {quantile:g}"


def variant(forecaster: str, *, best_fit: bool = False, at_peak: bool = False) -> str:
    """Name of the line of a forecaster packed by another rule, or without hours."""
    return forecaster + (", best fit" if best_fit else "") + (", at its peak" if at_peak else "")


def sweep(trace: str, days: Days, resource: str, seed: int) -> Cell | None:
    """Play one cell; None if the trace does not have the resource, or too few pods of it."""
    index = next(i for i, one in enumerate(RESOURCES) if one.name == resource)
    pods = _drawn(np.flatnonzero(days.used[:, index]), seed)
    if len(pods) < 2 * _FEWEST_NODES:
        return None
    pods, capacity = _node_of_size(pods, days.size[:, index], seed)
    cell = _CellDays(days, index, pods, capacity)
    lines = {TRUE_FUTURE: [cell.play([Demand(one) for one in cell.actual], margin) for margin in _MARGINS]}
    for forecaster in FORECASTERS:
        lines |= _lines_of_pods(cell, forecaster)
    lines |= _lines_of_ours(cell)
    best = cell.play([Demand(one) for one in cell.actual], 1.0).utilisation
    return Cell(trace, resource, len(pods), best, lines)


def _drawn(pods: Ints, seed: int) -> Ints:
    """Three quarters of the pods."""
    drawn = np.random.default_rng(seed).permutation(pods)[: max(len(pods) * 3 // 4, 2 * _FEWEST_NODES)]
    return np.sort(drawn)


def _node_of_size(pods: Ints, size: Floats, seed: int) -> tuple[Ints, float]:
    """The pods that count and the capacity of a node: the peaks of about 5 of them, varied by the seed."""
    vary = float(np.exp(np.random.default_rng((seed, 1)).uniform(-0.25, 0.25)))
    while True:
        capacity = vary * min(_PODS_PER_NODE, len(pods) / _FEWEST_NODES) * float(size[pods].mean())
        fits = size[pods] <= _LARGEST_POD * capacity
        if fits.all() or fits.sum() < 2 * _FEWEST_NODES:
            return pods, capacity
        pods = pods[fits]


@dataclass(frozen=True, slots=True)
class _CellDays:
    """The pods of a cell at all midnights."""

    days: Days
    resource: int
    pods: Ints
    capacity: float

    @property
    def actual(self) -> Floats:
        """(n_origins, n_pods, 48)"""
        return np.nan_to_num(self.days.actual[:, self.pods, self.resource])

    def curves(self, forecaster: str, quantile: float) -> Floats:
        """(n_origins, n_pods, 48)"""
        return self.days.of(forecaster)[..., QUANTILES.index(quantile)][:, self.pods, self.resource]

    def play(self, demands: Iterable[Demand], margin: float = 1.0, rule: Rule = Rule.FIRST_FIT) -> Outcome:
        """Pack and play back each day; one demand for each."""
        return mean_outcome(
            [
                outcome(pack(demand, margin * self.capacity, rule), actual, self.capacity)
                for demand, actual in zip(demands, self.actual, strict=True)
            ]
        )


def _lines_of_pods(cell: _CellDays, forecaster: str) -> dict[str, list[Outcome]]:
    """The packed quantile swept, in all ways to pack."""
    demands = {q: [Demand(one) for one in cell.curves(forecaster, q)] for q in PACKED}
    at_peak = {q: [one.at_peak() for one in found] for q, found in demands.items()}
    settings = _with_ends(PACKED)
    return {
        forecaster: [cell.play(demands[q], margin) for q, margin in settings],
        variant(forecaster, best_fit=True): [cell.play(demands[q], margin, Rule.BEST_FIT) for q, margin in settings],
        variant(forecaster, at_peak=True): [cell.play(at_peak[q], margin) for q, margin in settings],
    }


def _with_ends(swept: Sequence[float]) -> list[tuple[float, float]]:
    """What is swept, without a margin; beyond its ends, the first and the last value with one."""
    looser = [(swept[0], margin) for margin in _LOOSER]
    return looser + [(one, 1.0) for one in swept] + [(swept[-1], margin) for margin in _TIGHTER]


def _lines_of_ours(cell: _CellDays) -> dict[str, list[Outcome]]:
    """What the packed quantile should be, of pods and of nodes, and the published bounds."""
    days, pods, r = cell.days, cell.pods, cell.resource

    def nodes(z: Floats) -> list[Demand]:
        return [
            Demand(days.mean[o][pods, r], days.variance[o][pods, r], float(days.cluster_std[o, r]), float(z[o]))
            for o in range(len(days.actual))
        ]

    def constant(z: float) -> Floats:
        return np.full(len(days.actual), z)

    lines = {BY_NODE: [cell.play(nodes(constant(z)), margin) for z, margin in _with_ends(Z)]}
    for quantile in PACKED:
        demands = [Demand(one) for one in cell.curves(OURS, quantile)]
        lines[quantile_line(quantile)] = [cell.play(demands, margin) for margin in _MARGINS]
    for z in Z:
        lines[node_line(z)] = [cell.play(nodes(constant(z)), margin) for margin in _MARGINS]
    highest = np.maximum(days.mean[:, pods, r].max(axis=-1), np.finfo(np.float32).tiny)  # (n_origins, n_pods)
    for index, quantile in enumerate(PEAK_QUANTILES):
        bound = nodes(days.node_z[:, r, index])
        lines[node_bound_line(quantile)] = [cell.play(bound, margin) for margin in _MARGINS]
        raised = days.mean[:, pods, r] * (days.peaks[:, pods, r, index] / highest)[..., None]
        lines[peak_line(quantile)] = [cell.play([Demand(one) for one in raised], margin) for margin in _MARGINS]
    return lines
