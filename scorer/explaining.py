"""Why nodes scored what they did for a pod: contributions, predicted peaks before and with it, what else matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forecast.arrays import Floats, Ints
from scorer.answers import ExplainedNode, ExplainedScore, Peak
from scorer.degradation import Level
from scorer.highest_peak import bounding_peaks, slots_of_day
from scorer.judgement import Judgement
from scorer.predicted.base import NodeBases
from scorer.predicted.horizon import Horizon
from scorer.predicted.node_curves import NodeInputs, gather, node_curves
from scorer.predicted.profiles import Profiles
from scorer.scoring import PodScores
from scorer.tracking import LIVE_HALF_LIFE_SLOTS, TrackedCluster


@dataclass(frozen=True, slots=True)
class PeakInputs:
    """Copies of what the peaks of some nodes need: each node twice, without and with the pod."""

    profiles: Profiles
    bases: NodeBases
    horizon: Horizon
    inputs: NodeInputs
    n_nodes: int


def gather_peaks(cluster: TrackedCluster, rows: Sequence[int], profile: int | None) -> PeakInputs | None:
    """Under the lock. None without a model."""
    predicted = cluster.predicted
    if predicted is None or profile is None:
        return None
    known = [row for row in rows if row < predicted.load.n_nodes]
    inputs = gather(predicted, [*known, *known], [None] * len(known) + [profile] * len(known))
    return PeakInputs(predicted.profiles, predicted.bases, predicted.horizon, inputs, len(known))


@dataclass(frozen=True, slots=True)
class PeaksOfNode:
    """Of the resource that bounds a node: over the coming week and today, without and with the pod."""

    before: Peak | None = None
    with_pod: Peak | None = None
    today_before: Peak | None = None
    today_with: Peak | None = None


def peaks_before_and_with(peaks: PeakInputs, widen: float) -> list[PeaksOfNode]:
    """The peaks of each node; no lock needed. Today is the whole local day, as in the list of nodes."""
    horizon, n = peaks.horizon, peaks.n_nodes
    curves = node_curves(
        peaks.profiles,
        peaks.bases,
        peaks.inputs,
        horizon.days,
        fading=horizon.fading(LIVE_HALF_LIFE_SLOTS),
        widen=widen,
    )
    week = bounding_peaks(curves, peaks.inputs, np.flatnonzero(horizon.weights() > 0), horizon)
    today = bounding_peaks(curves, peaks.inputs, slots_of_day(0), horizon)
    return [PeaksOfNode(*found) for found in zip(week[:n], week[n:], today[:n], today[n:], strict=True)]


def explained_nodes(
    scored: PodScores,
    best: Ints,
    names: Sequence[str],
    peaks: Sequence[PeaksOfNode],
    ranks: Sequence[int | None],
    measured_seconds_ago: Floats,
    runs_on: str,
    judgement: Judgement | None = None,
) -> tuple[ExplainedNode, ...]:
    """In the order of `best`, which are positions among the nodes scored; the others follow that order.

    ranks     : of each, 1 = the best; None = the pod may not go there
    runs_on   : the node where the pod is now; empty = none
    judgement : of the component that places the pod; its words come first
    """
    weight_sum = sum(scored.weights.values())
    explained = []
    for position, i in enumerate(best.tolist()):
        contributions = tuple(
            ExplainedScore(
                name,
                _rounded(scored.parts[name][i]),
                float(weight),
                _rounded(scored.parts[name][i] * weight / weight_sum),
            )
            for name, weight in scored.weights.items()
            if name in scored.parts
        )
        found = peaks[position] if position < len(peaks) else PeaksOfNode()
        age = float(measured_seconds_ago[position])
        notes = [] if judgement is None else list(judgement.notes(names[position]))
        if names[position] == runs_on:
            notes.append("the pod runs here now: its predicted load is left out, its requests are not")
        if scored.out_of_memory[i]:
            notes.append("its memory is predicted to run out: passed over")
        if not scored.known[i]:
            notes.append("its capacity is not known: scored like the median of the others")
        if scored.full[i]:
            notes.append("in use now to its capacity: avoided")
        if scored.levels[i] == Level.NO_LIVE_CORRECTION and not np.isfinite(age):
            notes.append("its usage is not measured: no live correction")
        explained.append(
            ExplainedNode(
                node=names[position],
                score=_rounded(scored.total[i]),
                contributions=contributions,
                level=Level(int(scored.levels[i])),
                measured_seconds_ago=age if np.isfinite(age) else None,
                peak_before=found.before,
                peak_with=found.with_pod,
                today_before=found.today_before,
                today_with=found.today_with,
                rank=ranks[position],
                notes=tuple(notes),
            )
        )
    return tuple(explained)


def _rounded(points: float) -> float:
    """Points to four digits after the point."""
    return round(float(points), 4)
