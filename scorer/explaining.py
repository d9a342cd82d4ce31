"""Why nodes scored what they did for a pod: contributions, predicted peaks before and with it, what else matters.

names, the best first --> listing --> without_and_with (under the lock) --> peaks_before_and_with --> explained_nodes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from cluster.degradation import Level
from cluster.predicted.node_load import LoadInputs, PeakHours, load_inputs
from cluster.tracking import TrackedCluster
from scorer.answers import ExplainedNode, ExplainedScore, Peak
from scorer.highest_peak import peaks_of_nodes
from scorer.judgement import Judgement
from scorer.scores import MAX_NODE_SCORE
from scorer.scoring import PodScores


@dataclass(frozen=True, slots=True)
class Listing:
    """The nodes that an explanation shows.

    positions : in the order of all nodes scored
    ranks     : of each, 1 = the best; None = the pod may not go there
    first_two : names of the best node and the runner-up; fewer if fewer can be compared
    """

    positions: tuple[int, ...]
    ranks: tuple[int | None, ...]
    first_two: tuple[str, ...]

    @property
    def runner_up(self) -> str | None:
        """The second node; None = there is none to compare."""
        return self.first_two[1] if len(self.first_two) > 1 else None

    def margin(self, totals: Mapping[str, float]) -> float | None:
        """Return by how much the total of the first passes that of the second; None = there are no two."""
        if len(self.first_two) < 2:
            return None
        first, second = self.first_two
        return totals[first] - totals[second]


def listing(
    in_order: Sequence[str], judgement: Judgement | None, sits_on: str, top: int, *, asked_for: bool
) -> Listing:
    """Choose the best `top` nodes that the pod may use, and its own.

    in_order  : all nodes scored, the best first, those that the pod may not use last
    judgement : of the component that places the pod; None = the pod may use all
    sits_on   : node of the pod; '' = it is bound to none
    asked_for : the nodes were named: show also those that the pod may not use
    """
    n_usable, own, compared = len(in_order), sits_on, in_order[:2]
    if judgement is not None:
        n_usable = sum(map(judgement.may_use, in_order))
        own = judgement.runs_on or sits_on
        compared = [name for name in in_order if name in judgement.totals][:2]  # nodes passed over have no sum
    # If the pod may go nowhere, all are shown: each says what rejects it.
    n_shown = n_usable if n_usable and not asked_for else len(in_order)
    positions = list(range(min(top, n_shown)))
    positions += [at for at, name in enumerate(in_order) if name == own and at >= len(positions)]
    ranks = tuple(at + 1 if at < n_usable else None for at in positions)
    return Listing(tuple(positions), ranks, tuple(compared))


def without_and_with(
    cluster: TrackedCluster, rows: Sequence[int], profile: int | None, widen: float
) -> LoadInputs | None:
    """Each node twice, without and with the pod; under the lock. None without a model."""
    predicted = cluster.predicted
    if predicted is None or profile is None:
        return None
    known = [row for row in rows if row < predicted.load.n_nodes]
    return load_inputs(predicted, [*known, *known], [None] * len(known) + [profile] * len(known), widen=widen)


@dataclass(frozen=True, slots=True)
class PeaksOfNode:
    """Of the next 24 hours and of the coming week, without and with the pod."""

    before: Peak | None = None
    with_pod: Peak | None = None
    week_before: Peak | None = None
    week_with: Peak | None = None


def peaks_before_and_with(load: LoadInputs) -> list[PeaksOfNode]:
    """The peaks of each node; no lock needed. load: of `without_and_with`"""
    horizon, n = load.horizon, len(load.nodes.names) // 2
    found = load.peaks(PeakHours.next_24(horizon), PeakHours.week(horizon))
    next_24, week = (peaks_of_nodes(one, horizon) for one in found)
    return [PeaksOfNode(*both) for both in zip(next_24[:n], next_24[n:], week[:n], week[n:], strict=True)]


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
    # A component that adds our scores to kube-scheduler's does without what the total has in the forecast's place.
    in_sums = judgement is not None and scored.profile is None
    parts, weights = (scored.ranked, scored.ranked_weights) if in_sums else (scored.parts, scored.weights)
    totals = np.clip(scored.ranking, 0.0, MAX_NODE_SCORE) if in_sums else scored.total
    weight_sum = sum(weights.values())
    explained = []
    for position, i in enumerate(best.tolist()):
        contributions = tuple(
            ExplainedScore(
                name,
                _rounded(parts[name][i]),
                float(weight),
                _rounded(parts[name][i] * weight / weight_sum),
            )
            for name, weight in weights.items()
            if name in parts
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
                score=_rounded(totals[i]),
                contributions=contributions,
                level=Level(int(scored.levels[i])),
                measured_seconds_ago=age if np.isfinite(age) else None,
                peak_before=found.before,
                peak_with=found.with_pod,
                week_before=found.week_before,
                week_with=found.week_with,
                rank=ranks[position],
                notes=tuple(notes),
            )
        )
    return tuple(explained)


def _rounded(points: float) -> float:
    """Points to four digits after the point."""
    return round(float(points), 4)
