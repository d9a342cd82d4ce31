"""What the moves of one night were worth, once the next peak has been lived through; and whether the rebalancer may
act tonight, decided from the grades of past nights alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from enum import Enum

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from base.errors import InputError
from forecast.resources import HOT_RESOURCES
from rebalancer.rebalance_settings import RebalanceMode, TrustOptions

Penalty = Callable[[AnyFloats], AnyFloats]
"""Of shares of capacity, of any shape: that by which the plan was made (rebalancer/planning/heat.py)."""


class Verdict(Enum):
    """What a night says about the rebalancer."""

    GOOD = "good"
    BAD = "bad"
    NO_MOVES = "no-moves"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """Of a plan, what its grade needs.

    predicted_gain : of all its moves, `gain_of_moves` over the expected load
    gain           : (n_moves,) of each as the planner saw it, >= 0: what share of the prediction each move has
    source, target : (n_moves,) rows of nodes
    made           : (n_moves,) whether the pod has moved; not read in shadow
    """

    predicted_gain: float
    gain: Floats
    source: Ints
    target: Ints
    made: Bools

    def only(self, moves: Bools) -> PlanFacts:
        """Some of its moves, and their share of the prediction."""
        total = float(self.gain.sum())
        share = float(self.gain[moves].sum()) / total if total > 0 else float(moves.mean()) if len(moves) else 0.0
        of = (self.gain[moves], self.source[moves], self.target[moves], self.made[moves])
        return PlanFacts(self.predicted_gain * share, *of)


@dataclass(frozen=True, slots=True)
class Grade:
    """Gains are in node half hours of heat.

    prevented, newly_hot : half hours of nodes that were hot without the moves only, and with them only
    coverage             : share of the readings that were there; the prediction counts for so much of it
    because              : the verdict in a sentence
    """

    verdict: Verdict
    predicted_gain: float
    realised_gain: float
    prevented: int
    newly_hot: int
    coverage: float
    because: str


@dataclass(frozen=True, slots=True)
class Effect:
    """Of moves, on the nodes that they touch."""

    gain: float
    prevented: int
    newly_hot: int
    coverage: float


def gain_of_moves(
    load: Floats,
    usage: Floats,
    source: Ints,
    target: Ints,
    capacity: Floats,
    penalty: Penalty,
    *,
    hot: float,
    made: bool,
) -> Effect:
    """Return what moves change.

    load     : (n_nodes, n_resources, n_slots) usage of the nodes, in the order of forecast.resources; NaN = not known
    usage    : (n_moves, n_resources, n_slots) usage of each pod that moves; NaN = not known
    source, target : (n_moves,) rows of nodes
    capacity : (n_nodes, n_resources); NaN = not a limit
    hot      : share of its capacity above which a node is hot
    made     : whether `load` is with the moves; else it is without
    """
    n_nodes, n_slots = len(load), load.shape[-1]
    if usage.shape != (len(source), load.shape[1], n_slots) or capacity.shape != load.shape[:2]:
        raise InputError(
            f"load {load.shape}, usage {usage.shape} of {len(source)} moves, capacity {capacity.shape}: they must be "
            "(nodes, resources, slots), (moves, resources, slots) and (nodes, resources)"
        )
    counted = list(HOT_RESOURCES)
    net = np.zeros((n_nodes, len(counted), n_slots))  # what the moves bring to each node
    np.add.at(net, target, usage[:, counted])
    np.subtract.at(net, source, usage[:, counted])
    touched = np.unique(np.concatenate((source, target)))
    lived, net = load[touched][:, counted], net[touched]
    without, with_them = (np.maximum(lived - net, 0), lived) if made else (lived, np.maximum(lived + net, 0))
    limit = capacity[touched][:, counted, None]
    known: Bools = np.isfinite(without) & np.isfinite(with_them) & np.asarray(limit > 0)  # (n_touched, n_hot, n_slots)
    before, after = (np.divide(one, limit, out=np.zeros_like(one), where=known) for one in (without, with_them))
    counts = np.any(known, axis=2, keepdims=True)  # a resource that is never measured is left out
    is_there = np.all(known | ~counts, axis=1) & np.any(counts, axis=1)  # (n_touched, n_slots)
    before, after = (np.where(is_there, share.max(axis=1), 0.0) for share in (before, after))
    return Effect(
        gain=float(penalty(before).sum() - penalty(after).sum()),
        prevented=int(((before > hot) & (after <= hot)).sum()),
        newly_hot=int(((after > hot) & (before <= hot)).sum()),
        coverage=float(is_there.mean()) if is_there.size else 0.0,
    )


def grade(
    plan: PlanFacts,
    measured: Floats,
    moved_usage: Floats,
    capacity: Floats,
    options: TrustOptions,
    *,
    mode: RebalanceMode,
    hot: float,
    penalty: Penalty,
) -> Grade:
    """Return the grade of a night, from what was measured in the hours that it was planned for.

    measured    : (n_nodes, n_resources, n_slots) usage of the nodes; NaN = not measured
    moved_usage : (n_moves, n_resources, n_slots) of the pods of all moves of the plan, wherever they ran: measured, or
                  the mean of their service's pods. NaN = not known
    mode        : that the plan was made in
    hot         : share of its capacity above which a node is hot
    """
    counted = plan.made if mode is RebalanceMode.ON else np.ones(len(plan.source), dtype=bool)
    plan = plan.only(counted)
    if not len(plan.source):
        because = "no pod was moved" if mode is RebalanceMode.ON else "no move is planned"
        return Grade(Verdict.NO_MOVES, 0.0, 0.0, 0, 0, 0.0, because)
    effect = gain_of_moves(
        measured,
        moved_usage[counted],
        plan.source,
        plan.target,
        capacity,
        penalty,
        hot=hot,
        made=mode is RebalanceMode.ON,
    )
    verdict, because = _judge(plan.predicted_gain * effect.coverage, effect, options)
    return Grade(
        verdict,
        predicted_gain=plan.predicted_gain,
        realised_gain=effect.gain,
        prevented=effect.prevented,
        newly_hot=effect.newly_hot,
        coverage=effect.coverage,
        because=because,
    )


def _judge(predicted: float, effect: Effect, options: TrustOptions) -> tuple[Verdict, str]:
    """predicted: for the readings that are there."""
    if not np.isfinite(predicted) or effect.coverage < options.coverage:
        return Verdict.UNKNOWN, f"only {effect.coverage:.0%} of the readings are there"
    if effect.newly_hot > max(1.0, options.newly_hot_share * effect.prevented):
        return Verdict.BAD, f"{effect.newly_hot} half hours became hot and {effect.prevented} were prevented"
    gains = f"{effect.gain:.1f} of {predicted:.1f} predicted node half hours of heat were prevented"
    if effect.gain < -options.least_gain:
        return Verdict.BAD, gains
    if predicted < options.least_gain:
        # A small plan that helped as much as a large one must is good all the same.
        return (Verdict.GOOD if effect.gain >= options.least_gain else Verdict.UNKNOWN), gains
    return (Verdict.GOOD if effect.gain >= options.least_share * predicted else Verdict.BAD), gains


# May the rebalancer act tonight? Decided from the records of past nights alone, so that nothing else need be kept.
#
#                      bad_nights bad nights in a row
#           on  ---------------------------------------->  shadow, although `on` is configured
#            ^                                                |
#            |  a person: counts_from, or another mode for a night and `on` again
#            +------------------------------------------------+
#            |  return_after good shadow nights in a row, if it is set
#            +------------------------------------------------+
#
# Nights that could not be graded, or without moves, neither add to a row nor end it. Each record says in which mode the
# night was, so that the newest alone remembers a stand-down: records may be deleted from the oldest on.


@dataclass(frozen=True, slots=True)
class NightRecord:
    """One night, as the status of its RebalancePlan keeps it.

    night      : local day on which the moves were to be made
    configured : what the settings said then
    mode       : what it was made in
    verdict    : None = not graded yet
    """

    night: date
    configured: RebalanceMode
    mode: RebalanceMode
    verdict: Verdict | None = None

    @property
    def stood_down(self) -> bool:
        """Whether it was made in shadow because of the nights before it."""
        return self.configured is RebalanceMode.ON and self.mode is not RebalanceMode.ON


@dataclass(frozen=True, slots=True)
class Trust:
    """mode: what the next plan may do. because: a sentence for reports, if it is less than what is configured.

    bad_nights : graded as bad in a row, up to now
    """

    mode: RebalanceMode
    because: str = ""
    bad_nights: int = 0

    @property
    def stood_down(self) -> bool:
        """Whether it is in shadow because of bad nights."""
        return bool(self.because)


def mode_from(records: Iterable[NightRecord], configured: RebalanceMode, options: TrustOptions) -> Trust:
    """Return what the rebalancer may do now.

    records : in any order; of two of one night the later in the order counts after the other
    """
    counted = [one for one in records if options.counts_from is None or one.night >= options.counts_from]
    is_down, bad, good, since = False, 0, 0, None
    for record in sorted(counted, key=lambda one: one.night):
        if record.configured is not RebalanceMode.ON:
            # A person decided this, and whatever was before is known to that person.
            is_down, bad, good = False, 0, 0
            continue
        if record.stood_down != is_down:
            # The record knows: of nights that are deleted, of a person's decision, of a verdict that came late.
            is_down, good, since = record.stood_down, 0, record.night
        if record.verdict is Verdict.BAD:
            bad, good = bad + 1, 0
        elif record.verdict is Verdict.GOOD:
            bad, good = 0, good + 1
        if not is_down and bad >= options.bad_nights:
            is_down, good, since = True, 0, record.night
        elif is_down and options.return_after is not None and good >= options.return_after:
            is_down, bad, good, since = False, 0, 0, None
    if configured is not RebalanceMode.ON or not is_down:
        return Trust(configured, bad_nights=bad)
    return Trust(RebalanceMode.SHADOW, f"stood down after {options.bad_nights} bad nights in a row, since {since}", bad)
