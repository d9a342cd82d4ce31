"""Follower: how many cards are wanted by pods that cannot do with every type, now and not long ago.

    pods that name types --what they name--> wanted by those that sit, by those that wait
                                         --> the most that was wanted at once, halved with every half-life since

Demand comes and goes, and a pod keeps its cards for hours: the demand of this evening is a guide for the next. All pods
of the cluster count, also those of other schedulers. Memory is bounded: pods that exist, and the last 256 things that
pods have named.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from cluster.tables.state import ClusterState
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.card_types.card_type_requests import CardTypeRequest, wish_of
from placement.devices.device_demand import gpu_demand
from placement.devices.device_table import DeviceTable

_MOST_REMEMBERED: Final = 256
_MOST_REPORTED: Final = 1024
"""Any client may name anything: each name is compared with all models every time."""

_NOTHING: Final = 1.0
"""Thousandths of a card below which what was wanted once is forgotten."""


@dataclass(slots=True)
class WantedCards:
    """By pods that name the same types, in thousandths of a card.

    sitting, waiting : now
    once, at         : the most at once, counted down to the unix seconds `at`
    """

    wish: CardTypeRequest
    sitting: int = 0
    waiting: int = 0
    once: float = 0.0
    at: float = 0.0

    @property
    def now(self) -> int:
        """By all of them."""
        return self.sitting + self.waiting

    def recent(self, now: float, half_life: float) -> float:
        """What is wanted, or what is left of what was."""
        age = max(0.0, now - self.at)  # a clock that was set back takes nothing away
        return max(float(self.now), self.once * math.exp2(-age / half_life))


@dataclass(frozen=True, slots=True)
class _Counted:
    """A pod that counts."""

    wish: CardTypeRequest
    milli: int
    is_waiting: bool


class CardDemand(NodesAndPodsOnly):
    """To be attached after the devices. Everything is called under the lock of the tables."""

    def __init__(
        self,
        state: ClusterState,
        devices: DeviceTable,
        *,
        half_life_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """clock: unix seconds."""
        self._state, self._devices, self._clock = state, devices, clock
        self._half_life = half_life_seconds
        self._counted: dict[str, _Counted] = {}  # by UID
        self._wanted: dict[CardTypeRequest, WantedCards] = {}
        self._most = 2 * _MOST_REMEMBERED  # entries before it is worth looking which of them are of the past
        self.rebuild()

    def wanted(self) -> Sequence[WantedCards]:
        """Of all that is named now, or was lately; of more than 1,024 the largest."""
        now, half_life = self._clock(), self._half_life
        self._forget(now)
        most_first = sorted(self._wanted.values(), key=lambda one: -one.recent(now, half_life))
        return most_first[:_MOST_REPORTED]

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                is_there = change.after is not None or change.pod.uid in self._state.pods
                self._pod_changed(change.pod, sits=change.after is not None, is_there=is_there)

    def rebuild(self) -> None:
        """From the tables as they are; what was wanted once is still remembered."""
        for uid in list(self._counted):
            self._leave(uid)
        for uid, pod in self._state.pods.items():
            self._pod_changed(pod, sits=uid in self._state.seat_of, is_there=True)

    # Inside

    def _pod_changed(self, pod: PodInfo, *, sits: bool, is_there: bool) -> None:
        counts = self._counts(pod, sits=sits) if is_there else None
        before = self._counted.get(pod.uid)
        if counts == before:
            return
        if before is not None:
            self._leave(pod.uid)
        if counts is not None:
            self._take(pod.uid, counts)

    def _counts(self, pod: PodInfo, *, sits: bool) -> _Counted | None:
        """One that waits and is not to be placed yet, or not any more, does not count; nor does one that has ended."""
        if not sits and (not waits(pod) or pod.gates or pod.terminating):
            return None
        wish = wish_of(pod, self._devices.options.model_labels)
        if not wish.is_choosy or (demand := gpu_demand(pod, self._devices.options)) is None:
            return None
        demand = self._devices.typical_demand(demand)
        return _Counted(CardTypeRequest(wish.required, wish.labelled), demand.count * demand.milli, is_waiting=not sits)

    def _take(self, uid: str, counts: _Counted) -> None:
        now = self._clock()
        wanted = self._wanted.get(counts.wish)
        if wanted is None:
            wanted = self._wanted[counts.wish] = WantedCards(counts.wish)
        self._counted[uid] = counts
        recent = wanted.recent(now, self._half_life)
        if counts.is_waiting:
            wanted.waiting += counts.milli
        else:
            wanted.sitting += counts.milli
        wanted.once, wanted.at = max(recent, float(wanted.now)), now

    def _leave(self, uid: str) -> None:
        counts, now = self._counted.pop(uid), self._clock()
        wanted = self._wanted[counts.wish]
        wanted.once, wanted.at = wanted.recent(now, self._half_life), now
        if counts.is_waiting:
            wanted.waiting -= counts.milli
        else:
            wanted.sitting -= counts.milli
        if len(self._wanted) > self._most:
            self._forget(now)
            self._most = 2 * len(self._wanted) + _MOST_REMEMBERED

    def _forget(self, now: float) -> None:
        """Of things that no pod names any more, remember only the largest part, and nothing that has faded."""
        gone = sorted(self._past(now), reverse=True, key=lambda one: one[0])
        for position, (recent, wish) in enumerate(gone):
            if position >= _MOST_REMEMBERED or recent < _NOTHING:
                del self._wanted[wish]

    def _past(self, now: float) -> Iterator[tuple[float, CardTypeRequest]]:
        for wish, wanted in self._wanted.items():
            if not wanted.now:
                yield wanted.recent(now, self._half_life), wish
