"""Which minimum each HorizontalPodAutoscaler gets now: decisions without I/O, and what one process remembers of them.

A minimum is raised while the load ahead wants more replicas than the present load does, to what the external metric
would make the autoscaler want. It is lowered to the highest wish of the last minutes, and is the original again once
there is none. What others set is theirs: the autoscaler is then left alone for a day.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from autoscaling.autoscale_settings import MinReplicasOptions
from autoscaling.replicas.horizontal_autoscalers import HorizontalAutoscaler
from autoscaling.replicas.loads_ahead import LoadsAhead
from autoscaling.replicas.replicas_needed import LoadsByService, ReplicasNeeded, by_service, replicas_needed
from autoscaling.replicas.room import Room
from autoscaling.services_ahead import ServicesAhead, is_placeholder
from base.arrays import Floats
from base.excluded import ExcludedOptions
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey

_NEVER: Final = float("-inf")
_LEFT: Final = "others changed what we wrote: left alone for a day"
_NO_ROOM: Final = "there is no room for more pods"
_NO_BUDGET: Final = "autoscale.min_replicas.most_share is spent"


class MinimumOutcome(StrEnum):
    """What becomes of a minimum."""

    RAISED = "raised"
    LOWERED = "lowered"
    RESTORED = "restored"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class MinimumChange:
    """One write. minimum: that it has afterwards; until: LEFT alone, in unix seconds; why: for people"""

    of: HorizontalAutoscaler
    outcome: MinimumOutcome
    minimum: int
    why: str
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class MinimumDecision:
    """changes: of this turn, the largest lack first; kept: why others that ask keep their minimum, by autoscaler"""

    changes: tuple[MinimumChange, ...]
    kept: tuple[tuple[HorizontalAutoscaler, str, str], ...]

    def counted(self) -> Counter[str]:
        """How many keep their minimum, by reason."""
        return Counter(why for _, why, _ in self.kept)


@dataclass(slots=True)
class _Known:
    """Of one autoscaler. written: the minimum that a record of ours has; wishes: (unix seconds, replicas) of late."""

    written: int | None = None
    wishes: deque[tuple[float, int]] = field(default_factory=deque)
    raised_at: float = _NEVER
    left_until: float = 0.0


@dataclass(slots=True)
class _Wanted:
    """One that may grow or shrink. base: replicas that cost no budget; request: (2,) cores and bytes of one pod"""

    of: HorizontalAutoscaler
    minimum: int
    base: int
    request: Floats
    needed: ReplicasNeeded | None


class Raising:
    """For one thread. What must outlive the process is on the objects (horizontal_autoscalers.py); what is kept here
    only delays: after a restart each minimum is held anew."""

    def __init__(self, options: MinReplicasOptions, excluded: ExcludedOptions) -> None:
        self._options, self._excluded = options, excluded
        self._known: dict[str, _Known] = {}

    def decide(
        self,
        autoscalers: Sequence[HorizontalAutoscaler],
        ahead: ServicesAhead,
        loads: LoadsAhead,
        room: Room,
        now: float,
    ) -> MinimumDecision:
        """What to write now. room: is taken from; now: unix seconds"""
        self._known = {one.uid: self._known.get(one.uid, _Known()) for one in autoscalers}
        rows, said = {service: row for row, service in enumerate(ahead.services)}, by_service(loads)
        changes, kept, wanted = list[MinimumChange](), list[tuple[HorizontalAutoscaler, str, str]](), list[_Wanted]()
        for one in autoscalers:
            known = self._known[one.uid]
            if not one.asks:
                known.left_until = 0.0
                known.wishes.clear()
                if one.record is not None or one.left_until:
                    changes.append(MinimumChange(one, MinimumOutcome.RESTORED, one.original, "its owner asks no more"))
            elif one.is_changed or (known.written is not None and one.record is None and not one.set_by_us):
                known.wishes.clear()
                changes.append(self._left(one, known, now))
            else:
                found, why = self._wanted(one, known, ahead, rows, said, now)
                wanted.append(found)
                if why:
                    kept.append((one, why, why))
        more, short = self._within(wanted, ahead, room, now)
        changes += more
        kept += short
        late = [(one.of, "the writes of this turn are spent", "") for one in changes[self._options.at_once :]]
        return MinimumDecision(tuple(changes[: self._options.at_once]), (*kept, *late))

    def wrote(self, change: MinimumChange, now: float) -> None:
        """Remember a change that was carried out."""
        known = self._known.setdefault(change.of.uid, _Known())
        is_ours = change.outcome in (MinimumOutcome.RAISED, MinimumOutcome.LOWERED)
        known.written = change.minimum if is_ours else None
        known.left_until = change.until
        if change.outcome is MinimumOutcome.RAISED:
            known.raised_at = now

    def forget(self) -> None:
        """Start anew: all was taken back."""
        self._known.clear()

    # Inside

    def _left(self, one: HorizontalAutoscaler, known: _Known, now: float) -> MinimumChange:
        ours = one.record.raised if one.record is not None else known.written
        who = f" ({one.setter})" if one.setter else ""
        why = (
            f"minReplicas is {one.minimum}{who}, and was {ours} by us: it is left alone for a day. If a GitOps tool "
            "writes it, have that ignore /spec/minReplicas"
        )
        return MinimumChange(one, MinimumOutcome.LEFT, one.minimum, why, now + self._options.yields)

    def _wanted(
        self,
        one: HorizontalAutoscaler,
        known: _Known,
        ahead: ServicesAhead,
        rows: Mapping[ServiceKey, int],
        said: LoadsByService,
        now: float,
    ) -> tuple[_Wanted, str]:
        """The minimum it should have, and why it asks in vain; '' = it does not."""
        row = rows.get(one.service)
        request = np.zeros(2) if row is None else ahead.requests[row]
        why = one.kept or self._excluded.why(one.namespace, one.service.kind, one.service.name)
        if not why and max(one.left_until, known.left_until) > now:
            why = _LEFT
        if why:  # at once: somebody decided so
            known.wishes.clear()
            return _Wanted(one, one.original, one.original, request, None), why
        requests = {"cpu": float(request[CPU]), "memory": float(request[MEMORY])}
        needed = replicas_needed(one, said.get(one.service, {}), requests)
        if row is None:
            why = "its service has no forecast"
        elif not one.is_active:
            # Without its own metrics it would not scale down again.
            needed, why = None, "it does not scale at present: see its conditions"
        elif needed is None:
            why = "nothing is measured of its service, or its pods request none of what it scales by"
        if not known.wishes and one.record is not None:  # another process wrote it
            known.written = one.record.raised
            known.wishes.append((now, one.record.raised))
        wish = needed.ahead if needed is not None and needed.ahead > needed.now else 0
        known.wishes.append((now, wish))
        while known.wishes[0][0] < now - self._options.hold:
            known.wishes.popleft()
        # Wishes of late hold what there is; they raise nothing.
        held = min(one.minimum, max(wish for _, wish in known.wishes))
        minimum = max(one.original, min(max(wish, held), one.maximum))
        return _Wanted(one, minimum, max(one.original, needed.now if needed else 0), request, needed), why

    def _within(
        self, wanted: Sequence[_Wanted], ahead: ServicesAhead, room: Room, now: float
    ) -> tuple[list[MinimumChange], list[tuple[HorizontalAutoscaler, str, str]]]:
        """The changes that budget and room allow."""
        there = (ahead.replicas[:, None] * ahead.requests)[~is_placeholder(ahead)].sum(axis=0)  # (2,)
        left = self._options.most_share * there
        for one in wanted:
            if one.of.record is not None:
                left = left - max(min(one.of.minimum, one.minimum) - one.base, 0) * one.request
        changes, short = list[MinimumChange](), list[tuple[HorizontalAutoscaler, str, str]]()
        growing = [one for one in wanted if one.minimum > one.of.minimum]
        growing.sort(key=lambda one: (-one.minimum / max(one.of.current, 1), one.of.namespace, one.of.name))
        for one in growing:
            of, known = one.of, self._known[one.of.uid]
            if now - known.raised_at < of.period:
                continue  # its scaleUp policies let it grow again later
            free = max(one.base, of.minimum)
            asked = one.request > 0
            paid = int(np.floor(np.maximum(left, 0.0)[asked] / one.request[asked] + 1e-9).min(initial=2**31))
            minimum, why, note = min(one.minimum, of.limit), "", ""
            if minimum > free + paid:
                minimum, why = free + paid, _NO_BUDGET
                note = f"{one.minimum} replicas were wanted ahead of the load: {_NO_BUDGET}"
            if (more := minimum - of.current) > 0:
                cores, size = one.request.tolist()
                fits, lacks = room.take(of.namespace, cores, size, more)
                if lacks:
                    minimum, why = of.current + fits, _NO_ROOM
                    note = f"{one.minimum} replicas were wanted ahead of the load, {of.current} run: {lacks}"
            if why:
                short.append((of, why, note))
            if minimum > of.minimum:
                left = left - max(minimum - free, 0) * one.request
                changes.append(MinimumChange(of, MinimumOutcome.RAISED, minimum, _why_raised(one, minimum)))
        for one in wanted:
            if one.of.record is not None and one.minimum < one.of.minimum:
                outcome = MinimumOutcome.LOWERED if one.minimum > one.of.original else MinimumOutcome.RESTORED
                why = f"minReplicas from {one.of.minimum} to {one.minimum}: the load ahead needs no more"
                changes.append(MinimumChange(one.of, outcome, one.minimum, why))
        return changes, short


def _why_raised(one: _Wanted, minimum: int) -> str:
    need = f"the load ahead needs {one.needed.ahead} replicas, that of now {one.needed.now}" if one.needed else ""
    return f"minReplicas from {one.of.minimum} to {minimum}, originally {one.of.original}: {need or 'as before'}"
