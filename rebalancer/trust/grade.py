"""What the moves of one night were worth, once the next peak has been lived through.

What would have been without the moves is not measured, but it follows from what is: the usage of the pods that moved is
added to the node that they left and taken from the node that they came to. In shadow it is the other way round: what
was measured is without the moves, and what would have been with them follows.

    gain = heat without the moves - heat with them,    heat = sum over nodes and slots of penalty(worst share)

The predicted gain is the same sum over the expected load. It leaves out the forecast's margins: a plan also lowers the
risk of hours that rarely come, and of one day that says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from base.errors import InputError
from forecast.resources import HOT_RESOURCES, HOT_SHARE
from rebalancer.options import Mode, TrustOptions

Penalty = Callable[[AnyFloats], AnyFloats]
"""Of shares of capacity, of any shape: that by which the plan was made (rebalancer/planning/heat.py)."""


class Verdict(Enum):
    """What a night says about the rebalancer."""

    GOOD = "good"
    BAD = "bad"
    NO_MOVES = "no-moves"
    UNKNOWN = "unknown"

    @property
    def is_grade(self) -> bool:
        """Whether the night could be graded."""
        return self in (Verdict.GOOD, Verdict.BAD)


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
    load: Floats, usage: Floats, source: Ints, target: Ints, capacity: Floats, penalty: Penalty, *, made: bool
) -> Effect:
    """Return what moves change.

    load     : (n_nodes, n_resources, n_slots) usage of the nodes, in the order of forecast.resources; NaN = not known
    usage    : (n_moves, n_resources, n_slots) usage of each pod that moves; NaN = not known
    source, target : (n_moves,) rows of nodes
    capacity : (n_nodes, n_resources); NaN = not a limit
    made     : whether `load` is with the moves; else it is without
    """
    n_nodes, n_slots = len(load), load.shape[-1]
    if usage.shape != (len(source), load.shape[1], n_slots) or capacity.shape != load.shape[:2]:
        raise InputError(
            f"load {load.shape}, usage {usage.shape} of {len(source)} moves, capacity {capacity.shape}: they must be "
            "(nodes, resources, slots), (moves, resources, slots) and (nodes, resources)"
        )
    hot = list(HOT_RESOURCES)
    net = np.zeros((n_nodes, len(hot), n_slots))  # what the moves bring to each node
    np.add.at(net, target, usage[:, hot])
    np.subtract.at(net, source, usage[:, hot])
    touched = np.unique(np.concatenate((source, target)))
    lived, net = load[touched][:, hot], net[touched]
    without, with_them = (np.maximum(lived - net, 0), lived) if made else (lived, np.maximum(lived + net, 0))
    limit = capacity[touched][:, hot, None]
    known: Bools = np.isfinite(without) & np.isfinite(with_them) & np.asarray(limit > 0)  # (n_touched, n_hot, n_slots)
    before, after = (np.divide(one, limit, out=np.zeros_like(one), where=known) for one in (without, with_them))
    counts = np.any(known, axis=2, keepdims=True)  # a resource that is never measured is left out
    is_there = np.all(known | ~counts, axis=1) & np.any(counts, axis=1)  # (n_touched, n_slots)
    before, after = (np.where(is_there, share.max(axis=1), 0.0) for share in (before, after))
    return Effect(
        gain=float(penalty(before).sum() - penalty(after).sum()),
        prevented=int(((before > HOT_SHARE) & (after <= HOT_SHARE)).sum()),
        newly_hot=int(((after > HOT_SHARE) & (before <= HOT_SHARE)).sum()),
        coverage=float(is_there.mean()) if is_there.size else 0.0,
    )


def grade(
    plan: PlanFacts,
    measured: Floats,
    moved_usage: Floats,
    capacity: Floats,
    options: TrustOptions,
    *,
    mode: Mode,
    penalty: Penalty,
) -> Grade:
    """Return the grade of a night, from what was measured in the hours that it was planned for.

    measured    : (n_nodes, n_resources, n_slots) usage of the nodes; NaN = not measured
    moved_usage : (n_moves, n_resources, n_slots) of the pods of all moves of the plan, wherever they ran: measured, or
                  the mean of their service's pods. NaN = not known
    mode        : that the plan was made in
    """
    counted = plan.made if mode is Mode.ON else np.ones(len(plan.source), dtype=bool)
    plan = plan.only(counted)
    if not len(plan.source):
        because = "no pod was moved" if mode is Mode.ON else "no move is planned"
        return Grade(Verdict.NO_MOVES, 0.0, 0.0, 0, 0, 0.0, because)
    effect = gain_of_moves(
        measured, moved_usage[counted], plan.source, plan.target, capacity, penalty, made=mode is Mode.ON
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
