"""What a binding did to its pods: how full the nodes are predicted to get that they sit on. Pure.

A binding on trial shapes some of its pods (CANARY) and leaves others as they came (CONTROL), by chance. The difference
between the two is its effect as the forecast sees it: both are read from expected peaks, not from measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from base.arrays import Floats, Ints

FEWEST_PODS: Final = 5
"""Of each group, to compare them at all."""

FEWEST_NODES: Final = 3
"""That each group sits on: pods of one node share its peak, so it is nodes that are drawn anew."""

_DRAWS: Final = 1_000
_LEVEL: Final = 0.95


class EffectGroup(Enum):
    """How a binding concerns a pod. The value is the label of the metrics."""

    SHAPED = "shaped"
    """Shaped by a binding that is not on trial."""

    CANARY = "canary"
    """Chosen by the trial, and shaped."""

    CONTROL = "control"
    """Not chosen, and left as it came."""


@dataclass(frozen=True, slots=True)
class SeatedPods:
    """Pods that one binding concerns, by node.

    peaks : (n_nodes,) expected peak of the next 24 hours as a share of capacity; NaN = not known
    pods  : of each group that has any, (n_nodes,)
    """

    binding: str
    peaks: Floats
    pods: Mapping[EffectGroup, Ints]


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """Pods of one group and the nodes they sit on. Shares are NaN where no peak is known.

    mean_peak, hot_share : mean over pods; share of pods on nodes that are predicted above the setting `hot_share`
    highest_peak          : of any of their nodes
    """

    pods: int
    nodes: int
    mean_peak: float
    highest_peak: float
    hot_share: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean peak under CANARY less that under CONTROL, with the bounds of its 95 % bootstrap interval. Negative = the
    binding leads to nodes that are less full."""

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class BindingEffect:
    """groups: those that have pods; untold: why there is no difference, '' = there is one."""

    binding: str
    groups: Mapping[EffectGroup, GroupEffect]
    difference: Difference | None
    untold: str


def effect_of(seated: SeatedPods, rng: np.random.Generator, hot: float) -> BindingEffect:
    """All figures of one binding. rng: draws the bootstrap; hot: share above which a node is hot."""
    groups = {group: group_effect(seated.peaks, pods, hot) for group, pods in seated.pods.items()}
    untold = _untold(seated)
    return BindingEffect(seated.binding, groups, None if untold else difference(seated, rng), untold)


def group_effect(peaks: Floats, pods: Ints, hot: float) -> GroupEffect:
    """peaks, pods: (n_nodes,), see SeatedPods."""
    has_pods = pods > 0
    known = has_pods & np.isfinite(peaks)
    n_known = int(pods[known].sum())
    mean, highest, full = np.nan, np.nan, np.nan
    if n_known:
        mean = float(pods[known] @ peaks[known]) / n_known
        highest = float(peaks[known].max())
        full = float(pods[known] @ (peaks[known] > hot)) / n_known
    return GroupEffect(int(pods.sum()), int(has_pods.sum()), mean, highest, full)


def difference(seated: SeatedPods, rng: np.random.Generator) -> Difference:
    """Bootstrap over nodes, all pods of a node together (Cameron, Gelbach & Miller 2008, "Bootstrap-based improvements
    for inference with clustered errors"): drawing pods would take a hundred on one node for a hundred witnesses.

    Both groups must have pods on nodes with known peaks (_untold).
    """
    known = np.isfinite(seated.peaks)
    peaks = seated.peaks[known]
    canary, control = (
        seated.pods[group][known].astype(np.float64) for group in (EffectGroup.CANARY, EffectGroup.CONTROL)
    )
    concerned = canary + control > 0
    peaks, canary, control = peaks[concerned], canary[concerned], control[concerned]
    n_nodes = len(peaks)
    drawn = rng.multinomial(n_nodes, np.full(n_nodes, 1 / n_nodes), size=_DRAWS).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = drawn @ (canary * peaks) / (drawn @ canary) - drawn @ (control * peaks) / (drawn @ control)
    means = means[np.isfinite(means)]  # (n_draws,) without those that drew no pod of a group
    mean = canary @ peaks / canary.sum() - control @ peaks / control.sum()
    low, high = np.quantile(means, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Difference(float(mean), float(low), float(high))


def _untold(seated: SeatedPods) -> str:
    """Why the groups cannot be compared; '' = they can."""
    if not any(group in seated.pods for group in (EffectGroup.CANARY, EffectGroup.CONTROL)):
        return "not on trial: no pod is marked as canary or control"
    known = np.isfinite(seated.peaks)
    for group in (EffectGroup.CANARY, EffectGroup.CONTROL):
        pods = seated.pods.get(group, np.zeros(len(known), dtype=np.int64))[known]
        if (n_pods := int(pods.sum())) < FEWEST_PODS:
            where = "on nodes with a predicted peak" if n_pods < int(seated.pods.get(group, pods).sum()) else "placed"
            return f"too few pods to tell: {n_pods} {group.value} {where}, {FEWEST_PODS} needed"
        if (n_nodes := int((pods > 0).sum())) < FEWEST_NODES:
            return f"too few nodes to tell: the {group.value} pods sit on {n_nodes}, {FEWEST_NODES} needed"
    return ""
