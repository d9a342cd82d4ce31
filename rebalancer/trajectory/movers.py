"""Who moves pods in a trajectory: a mover looks at the cluster in each half hour, and names pods and their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from forecast.calendar import SLOT_MINUTES
from rebalancer.planning.cooldown import PastMove
from scorer.replay.running_cluster import RunningCluster
from scorer.replay.window import DEFAULT_HOUR

NIGHT_SLOT: Final = DEFAULT_HOUR * 60 // SLOT_MINUTES
"""04:00, the quiet hour: first services are released, then the night's plan is made, hours before the ramp."""


@dataclass(frozen=True, slots=True)
class PlayedMove(PastMove):
    """slot : at whose beginning the pod was moved; `night` is the day of the trajectory."""

    slot: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """A pod leaves its node.

    target : row of the node it goes to; None = it is evicted, and its replacement is placed by the placement rule
    """

    pod: int
    target: int | None = None


class Mover(Protocol):
    """Decides which running pods leave their nodes in a half hour."""

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        """Pods that move at the beginning of a half hour, in order. `cluster.state` holds the usage of the one before.

        past : moves that each pod has behind it since it was last placed anew, by pod, oldest first
        """


class NoMover:
    """Leaves every pod where it is."""

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        return ()
