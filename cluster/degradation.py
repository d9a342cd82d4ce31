"""How much of what we know is fresh: the degradation ladder, one rung at a time (docs/use/scorer.md).

    level  name                 needs
    0      FRESH                model up to 36 h old, usage of the node measured in the last minutes
    1      NO_LIVE_CORRECTION   model up to 36 h old
    2      OLD_MODEL            model up to 14 days old, its bounds widened with age
    3      REQUESTS             requests of the pods; live usage, if any, only keeps pods off nodes that are full now
    4      NEUTRAL              nothing: every node scores the same and kube-scheduler's own scores decide

Live usage is judged per node; the rest is the same for all nodes.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from base.arrays import Bools, Ints
from cluster.options import Ladder


class Level(IntEnum):
    """The rungs; higher is worse."""

    FRESH = 0
    NO_LIVE_CORRECTION = 1
    OLD_MODEL = 2
    REQUESTS = 3
    NEUTRAL = 4


def widening(model_age_days: int) -> float:
    """Return the factor on the bounds of a model of this age: twice as wide after a week.

    They are calibrated for the first days. A square root of time, as for a level that wanders, held 80 % of peaks after
    a week.
    """
    return 1.0 + max(0, model_age_days) / 7


def level_without_live(model_age: float | None, state_age: float, ladder: Ladder) -> Level:
    """Return the level of a node that is not measured.

    model_age : seconds since the model was due, None = no usable model
    state_age : seconds since the last contact with the API server
    """
    if state_age > ladder.oldest_state:
        return Level.NEUTRAL
    if model_age is None or model_age > ladder.oldest_model:
        return Level.REQUESTS
    return Level.NO_LIVE_CORRECTION if model_age <= ladder.fresh_model else Level.OLD_MODEL


def level_of_nodes(without_live: Level, measured: Bools) -> Ints:
    """Return the level of each node: (n_nodes,).

    without_live : FRESH is read as NO_LIVE_CORRECTION: it promises nothing about a node that is not measured
    measured     : (n_nodes,) whether its usage was measured recently
    """
    if without_live > Level.NO_LIVE_CORRECTION:
        return np.full(len(measured), int(without_live), dtype=np.int64)
    return np.where(measured, int(Level.FRESH), int(Level.NO_LIVE_CORRECTION))


def level_and_reasons(
    ladder: Ladder,
    *,
    model_age: float | None,
    refused: str | None,
    state_age: float | None,
    measured: Bools,
    usage_error: str | None,
) -> tuple[Level, tuple[str, ...]]:
    """The level of the cluster as a whole, and in words why it is not FRESH. Ages in seconds.

    refused     : why a published model is not used
    measured    : (n_nodes,) FRESH means that at least half of them are
    usage_error : why nothing is measured, where that is known
    """
    level = level_without_live(model_age, state_age or 0.0, ladder)
    reasons = []
    if level == Level.NEUTRAL:
        reasons.append(f"the API server has not been heard of for {state_age or 0:.0f} s")
    if model_age is None:
        reasons.append(f"no model: {refused}" if refused else "no model has been published")
    elif model_age > ladder.oldest_model:
        reasons.append(f"the model is {model_age / 86_400:.0f} days old, more than {ladder.oldest_model / 86_400:.0f}")
    elif model_age > ladder.fresh_model:
        reasons.append(f"the model is {model_age / 3600:.0f} hours old")
    if model_age is not None and refused:
        reasons.append(f"a newer model is refused: {refused}")
    n_measured, n_nodes = int(np.count_nonzero(measured)), len(measured)
    if n_measured < n_nodes or not n_nodes:
        why = f": {usage_error}" if usage_error else ""
        reasons.append(f"usage is measured on {n_measured} of {n_nodes} nodes{why}")
    if level == Level.NO_LIVE_CORRECTION and n_measured and 2 * n_measured >= n_nodes:
        level = Level.FRESH
    return level, tuple(reasons)
