"""Whose turn it is among queues and the pods that no queue takes, and among the owners who share a queue.

1. pods that were not tried for `longest_wait`, new ones and those that found no node before, whatever their priority;
   a quantum in every fourth turn at most, or a backlog would turn priorities off
2. a strictly higher priority goes first across everything, as everywhere in Kubernetes
3. among queues that have something of that priority: by weight, counted in pods
4. within a queue, what has to start within `due_lead`, first what has to start first; every other turn at most, except
   in a DEADLINE queue, and of a DRF queue a quantum: any client may mark a pod as urgent
5. else the queue's order: FIFO, PRIORITY and DEADLINE queues are one flow each; of a DRF queue the owner of the lowest
   level (owner_shares.py), of that of all tenants the one of the lowest (tenant_levels.py), with as many pods as
   bring it level with the next. Priorities count within a tenant, not between tenants, but for those of the system

An owner whose pods find no node stays at a low level and would be asked again and again: of owners that wait in a DRF
queue none waits longer than 32 turns of the queue, and 4 for each that waits; such a turn is of one pod.

A turn costs a cycle. Among hundreds of owners on a small cluster a fair one is of a pod, so that turns grow, up to a
quantum, where that takes little from other owners: with the backlog, and twofold after every turn of which no pod got a
node, until a pod leaves the cluster or nodes offer more.

Weighted fair turns between queues that have something to place: start-time fair queueing, counted in pods.

Each lane has a clock of its own, which its pods move on by 1 / weight each; the lane furthest behind goes next. A new
lane starts where the others are: no lane saves up turns. Goyal, Vin & Cheng, SIGCOMM 1996.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from placement.plugins import FlowHead, Pick, Turn
from placement.pod_importance import SYSTEM_CRITICAL
from scheduler.quota_queues.owner_levels import KnownFlow, Level, Levels, OwnerLevels
from scheduler.quota_queues.owner_shares import Shares
from scheduler.quota_queues.queue_of import QueueOwner
from scheduler.quota_queues.quota_queue_settings import TENANT_QUEUE, FairOptions, Order, PodQueue
from scheduler.quota_queues.tenant_levels import TenantLevels

# Weighted fair turns between queues that have something to place: start-time fair queueing, counted in pods.
#
# Each lane has a clock of its own, which its pods move on by 1 / weight each; the lane furthest behind goes next. A new
# lane starts where the others are: no lane saves up turns. Goyal, Vin & Cheng, SIGCOMM 1996.

_FEW_CLOCKS: Final = 64

_AGED_EVERY: Final = 4
_DUE_EVERY: Final = 2
_LEAST_TURNS: Final = 32
_TURNS_PER_OWNER: Final = 4

_FINEST: Final = 0.03
"""Of an even share among those who wait: a quantum of more would leave few pods' room shared out unevenly."""

_COARSEST: Final = 0.0005
"""Of the cluster: a quantum may be that, or hundreds of owners would have turns of one pod, and each costs a cycle."""

_MOST_TURNS: Final = 4096
"""Number of turns that suffice for all waiting pods, whatever that does to shares."""

_FEW: Final = 1024
_MANY: Final = 8192
_MOST_DOUBLINGS: Final = 16

_FEW_HEADS: Final = 64
"""Of so many flows the one whose pod waits longest is looked for in each turn, of more in every fourth."""

_KEPT_FOR: Final = 16
"""An order of tenants is kept for as many turns as one in 16 of them waits: none, up to 31."""

_TENANTS: Final = TENANT_QUEUE + "/"


class Lanes:
    """weight: of a lane, above 0."""

    def __init__(self, weight: Callable[[str], float]) -> None:
        self._weight = weight
        self._clocks: dict[str, float] = {}
        self._now = 0.0  # where the lane was whose turn was last

    def next(self, waiting: Collection[str]) -> str:
        """Of these lanes, one or more; equal ones by name."""
        clocks, now = self._clocks, self._now
        chosen = min(waiting, key=lambda lane: (max(clocks.get(lane, now), now), lane))
        self._now = max(clocks.get(chosen, now), now)
        if len(clocks) > len(waiting) + _FEW_CLOCKS:
            self._clocks = {lane: clock for lane, clock in clocks.items() if clock > self._now}
        return chosen

    def taken(self, lane: str, n_pods: int) -> None:
        """Count pods of the lane that have had their turn; below 0: they have not after all."""
        self._clocks[lane] = max(self._clocks.get(lane, 0.0), self._now) + n_pods / self._weight(lane)


@dataclass(slots=True)
class _Turns:
    """Of a queue. last: the turn in which a flow had its last one, or came; since_due: turns since an urgent one."""

    n: int
    last: dict[str, int]
    since_due: int = _DUE_EVERY


class FairFlows:
    """Implements FlowOrder, under the lock of the queue."""

    def __init__(
        self,
        queues: Mapping[str, PodQueue],
        shares: Shares,
        *,
        options: FairOptions | None = None,
        tenants: TenantLevels | None = None,
        ages: Callable[[], bool] = lambda: True,
    ) -> None:
        """
        queues  : by name, as `QueueOf.queues` has them
        tenants : of the queue of all tenants; None = there is no such queue
        ages    : whether pods that wait for long go before others, see FairOptions.longest_wait
        """
        self._queues, self._shares, self._options = queues, shares, options or FairOptions()
        self._owners: Levels = OwnerLevels(shares)
        self._tenants: Levels = self._owners if tenants is None else tenants
        self._ages = ages
        self._order: deque[tuple[Level, str]] = deque()  # of tenants: levels and flows, the lowest first
        self._lanes = Lanes(self._weight)
        self._turns: dict[str, _Turns] = {}
        self._flows: dict[str, KnownFlow] = {}
        self._since_aged = _AGED_EVERY
        self._in_vain = 0  # turns in a row of which no pod got a node
        self._last: tuple[QueueOwner, int] | None = None  # who had the last turn, and how many pods sat then
        self._room_seen = shares.room_changes

    def next(self, heads: Sequence[FlowHead], now: float) -> Turn:
        """See FlowOrder. `now` counts as unix time, which it is but for a clock that was set back."""
        self._since_aged += 1
        is_due = len(heads) <= _FEW_HEADS or self._since_aged % _AGED_EVERY == 0
        if self._options.longest_wait > 0 and is_due and self._ages() and self._since_aged >= _AGED_EVERY:
            aged = min(range(len(heads)), key=lambda at: heads[at].waits_since)
            if now - heads[aged].waits_since >= self._options.longest_wait:
                self._since_aged = 0
                return Turn(aged, self._options.quantum, Pick.LONGEST)
        highest = max([head.first.priority for head in heads])
        by_lane: dict[str, list[int]] = {}
        of_tenants = [at for at, head in enumerate(heads) if head.flow.startswith(_TENANTS)]
        highest_of_tenants = [at for at in of_tenants if heads[at].first.priority == highest]
        if highest_of_tenants:
            by_lane[_TENANTS] = of_tenants if highest < SYSTEM_CRITICAL else highest_of_tenants
        if len(of_tenants) < len(heads):
            for at, head in enumerate(heads):
                if head.first.priority == highest and not head.flow.startswith(_TENANTS):
                    by_lane.setdefault(self._known(head.flow).lane, []).append(at)
        lane = self._lanes.next(by_lane)
        queue = self._known(heads[by_lane[lane][0]].flow).queue
        return Turn(by_lane[lane][0]) if queue is None else self._within(queue, heads, by_lane[lane], now)

    def taken(self, flow: str, n_pods: int) -> None:
        if n_pods < 0:
            self._last = None  # unknown whether they would have got nodes
        self._lanes.taken(self._known(flow).lane, n_pods)

    # Inside

    def _weight(self, lane: str) -> float:
        queue = self._queues.get(lane.removesuffix("/"))
        return self._options.unqueued_weight if queue is None or not lane.endswith("/") else queue.weight

    def _known(self, flow: str) -> KnownFlow:
        known = self._flows.get(flow)
        if known is None:
            if len(self._flows) > _MANY:
                self._flows.clear()
            lane, slash, owner = flow.partition("/")
            queue = self._queues.get(lane) if slash else None
            weight = 1.0 if queue is None else queue.owner_weights.get(owner, 1.0)
            known = self._flows[flow] = KnownFlow(lane + slash, queue, QueueOwner(lane, owner), weight)
        return known

    def _within(self, queue: PodQueue, heads: Sequence[FlowHead], waiting: Sequence[int], now: float) -> Turn:
        """waiting: positions of the queue's flows of the highest priority."""
        turns = self._turns.setdefault(queue.name, _Turns(0, {}))
        turns.n += 1
        turns.since_due += 1
        if len(turns.last) > len(waiting) + _FEW:
            turns.last = {heads[at].flow: turns.last.get(heads[at].flow, turns.n) for at in waiting}
        most = queue.most_per_turn or None
        urgent = self._urgent(queue, heads, waiting, now)
        if urgent is not None and (queue.order is Order.DEADLINE or turns.since_due >= _DUE_EVERY):
            turns.since_due = 0
            turns.last[heads[urgent].flow] = turns.n
            if queue.order is Order.DRF and len(waiting) > 1:
                most = min(self._options.quantum, most or self._options.quantum)
            return Turn(urgent, most, Pick.DUE)
        if len(waiting) == 1:
            turn = Turn(waiting[0], most)
        else:
            # While an order of tenants is kept none of them is passed over.
            is_kept = queue.name == TENANT_QUEUE and len(self._order) > 1
            passed_over = None if is_kept else self._passed_over(turns, heads, waiting)
            turn = passed_over or self._lowest(queue, heads, waiting, most)
        turns.last[heads[turn.position].flow] = turns.n
        return turn

    def _urgent(self, queue: PodQueue, heads: Sequence[FlowHead], waiting: Sequence[int], now: float) -> int | None:
        """The flow whose unit has to start first and soon, and is of no lower priority than others of the queue."""
        first, chosen = now + self._options.due_lead, None
        for at in waiting:
            head, due = heads[at], heads[at].due
            if due is None or due.due > first:
                continue
            if queue.order is Order.FIFO or due.priority >= head.first.priority:
                first, chosen = due.due, at
        return chosen

    def _passed_over(self, turns: _Turns, heads: Sequence[FlowHead], waiting: Sequence[int]) -> Turn | None:
        """A flow that had no turn for too long."""
        last, n = turns.last, turns.n
        oldest = min(waiting, key=lambda at: last.setdefault(heads[at].flow, n))
        if n - last[heads[oldest].flow] > max(_LEAST_TURNS, _TURNS_PER_OWNER * len(waiting)):
            return Turn(oldest, 1)
        return None

    def _lowest(self, queue: PodQueue, heads: Sequence[FlowHead], waiting: Sequence[int], most: int | None) -> Turn:
        """The owner of the lowest level, with as many pods as bring it level with the next."""
        levels = self._tenants if queue.name == TENANT_QUEUE else self._owners
        self._look_at_last()
        at, next_level = self._first_of(queue, levels, heads, waiting)
        known = self._known(heads[at].flow)
        one, n_pods = levels.to_level(known, heads[at].pod, next_level)
        if not one:
            return Turn(at, most)  # of nothing there is enough for all
        self._last = known.member, self._shares.held(known.member).n_pods
        fair = int(max(_FINEST / len(waiting), _COARSEST) / one)
        backlog = sum([heads[each].n_pods for each in waiting])
        least = max(1, min(self._options.quantum, max(fair, backlog // _MOST_TURNS, 1 << self._in_vain)))
        n_pods = max(least, int(n_pods))
        return Turn(at, n_pods if most is None else min(n_pods, most))

    def _first_of(
        self, queue: PodQueue, levels: Levels, heads: Sequence[FlowHead], waiting: Sequence[int]
    ) -> tuple[int, Level]:
        """Position of the flow of the lowest level, and the level of the next. Of many tenants an order is kept for a
        few turns: each that had its turn is level with the next by then."""
        if queue.name != TENANT_QUEUE:
            (_, _, at), (next_level, _, _) = heapq.nsmallest(2, self._ranked(levels, heads, waiting))
            return at, next_level
        while len(self._order) > 1:
            _, flow = self._order.popleft()
            at = next((at for at in waiting if heads[at].flow == flow), -1)
            if at >= 0:
                return at, self._order[0][0]
        n_kept = max(1, len(waiting) // _KEPT_FOR) + 1
        first = heapq.nsmallest(n_kept, self._ranked(levels, heads, waiting))
        self._order = deque((level, heads[at].flow) for level, _, at in first[1:])
        return first[0][2], first[1][0]

    def _ranked(
        self, levels: Levels, heads: Sequence[FlowHead], waiting: Sequence[int]
    ) -> Iterator[tuple[Level, float, int]]:
        for at in waiting:
            head = heads[at]
            yield levels.level(self._known(head.flow), head.pod), head.first.since, at

    def _look_at_last(self) -> None:
        """Whether the last turn was in vain."""
        last, self._last = self._last, None
        if self._shares.room_changes != self._room_seen:
            self._room_seen, self._in_vain = self._shares.room_changes, 0
        elif last is not None:
            got_nodes = self._shares.held(last[0]).n_pods > last[1]
            self._in_vain = 0 if got_nodes else min(self._in_vain + 1, _MOST_DOUBLINGS)
