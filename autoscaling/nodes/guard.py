"""Which nodes the coming hours need, so that no autoscaler removes them: pure, from tables to marks.

The need is the highest sum of requests that the hours ahead are expected to bring. While it does not exceed what runs
now, no autoscaler can remove a node that is needed again, and nothing is marked (unless `always` asks for it).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaling.nodes.options import GuardOptions
from autoscaling.nodes.pods_ahead import is_placeholder, pods_ahead
from autoscaling.services_ahead import ServicesAhead
from base.arrays import Bools, Floats

_STEP_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True)
class NodesNow:
    """Nodes that are there.

    allocatable, requested : (n_nodes, 2) cores and bytes; placeholder pods do not count as requested
    usable : (n_nodes,) ready, not cordoned, no autoscaler is about to remove it
    until  : (n_nodes,) end of our mark in unix seconds; 0 = it bears none
    """

    names: tuple[str, ...]
    allocatable: Floats
    requested: Floats
    usable: Bools
    until: Floats

    @property
    def marked(self) -> Bools:
        """(n_nodes,): whether it bears a mark of ours."""
        return np.asarray(self.until > 0)


@dataclass(frozen=True, slots=True)
class Marks:
    """keep: nodes that should bear a mark, in the order of their names; need: cores and bytes that they hold."""

    keep: tuple[str, ...]
    need: tuple[float, float]


def marks(
    ahead: ServicesAhead, nodes: NodesNow, now: float, options: GuardOptions, *, foreign: Collection[str] = ()
) -> Marks:
    """The nodes to keep. now: unix seconds; foreign: nodes that others keep, which are never ours."""
    return marks_for(highest_need(ahead, nodes, now, options), nodes, options, foreign=foreign)


def highest_need(ahead: ServicesAhead, nodes: NodesNow, now: float, options: GuardOptions) -> Floats:
    """Cores and bytes, (2,), that the pods of the coming hours request at most, with a margin for the error."""
    moments = np.arange(now, now + options.horizon + 1.0, _STEP_SECONDS)
    coming = pods_ahead(ahead, now, moments)
    real = ~is_placeholder(ahead)
    requests = ahead.requests[real]  # (n_real, 2)
    expected = coming.pods[real].T @ requests  # (n_moments, 2)
    # What runs now is known, and an error grows with the time ahead as that of the load now fades (pods_ahead.py).
    error = np.sqrt(np.square(coming.std[real]).T @ np.square(requests))
    error[0] = 0.0
    others = np.maximum(nodes.requested.sum(axis=0) - ahead.replicas[real] @ requests, 0.0)
    return np.asarray((expected + options.margin * error).max(axis=0) + others)


def marks_for(need: Floats, nodes: NodesNow, options: GuardOptions, *, foreign: Collection[str] = ()) -> Marks:
    """The same for a known need: (2,) cores and bytes."""
    theirs = np.array([name in foreign for name in nodes.names], dtype=np.bool_)
    ours = nodes.marked & nodes.usable & ~theirs
    running = nodes.requested.sum(axis=0)
    threshold = running if ours.any() else running * (1 + options.slack)
    is_higher = bool((need > threshold + 1e-9 * (1 + running)).any())
    if not len(nodes.names) or not (options.always or is_higher):
        return Marks((), (float(need[0]), float(need[1])))
    holds = options.fill * nodes.allocatable  # (n_nodes, 2)
    kept = holds[theirs & nodes.usable].sum(axis=0)
    fullness = (nodes.requested / np.maximum(nodes.allocatable, 1e-9)).max(axis=1)
    order = np.lexsort((np.arange(len(fullness)), -fullness))
    chosen: list[int] = []
    for row in [row for row in order.tolist() if ours[row]]:  # the fullest first: the emptiest are released
        if (kept >= need * (1 + options.slack)).all():
            break
        chosen.append(row)
        kept = kept + holds[row]
    for row in [row for row in order.tolist() if nodes.usable[row] and not ours[row] and not theirs[row]]:
        if (kept >= need).all():
            break
        chosen.append(row)
        kept = kept + holds[row]
    most = int(options.most_share * len(nodes.names))
    keep = sorted(nodes.names[row] for row in chosen[:most])
    return Marks(tuple(keep), (float(need[0]), float(need[1])))
