"""Keeps the Leases of this replica: its own, which says that it lives, and one for each shard that it owns.

    every second: read all Leases -> renew ours -> give what others should have -> take what is free -> hand nodes over
    a shard: free --taken--> nodes and pods read anew --> owned --> leaving, until no pod of ours is on its way --> free

A replica that does not live by its own judgement (its loop hangs, its watch lags) gives everything back. One that is
killed or cut off renews nothing: others take its shards once the Leases have expired, and by then it binds nothing any
more (kube/leader_election/election.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from cluster.assuming_cluster import AssumingCluster
from kube.leader_election.lease import running_time
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.lease_set import LeaseSet
from scheduler.loop_settings import ShardOptions
from scheduler.shards.alone_leader import AloneLeader
from scheduler.shards.assignment import Dispatcher, ShardState, dispatcher, even_rooms, to_give, to_take
from scheduler.shards.node_moves import NodeMoves
from scheduler.shards.ownership import NodeOwnership
from scheduler.shards.shard_leases import COUNT, PODS_VERSION, ROOM, Peers, number_in, replica_name, shard_names
from scheduler.shards.shard_room import node_rooms, nodes_to_move, shard_rooms

logger = logging.getLogger(__name__)

_LEAVING_SECONDS: Final = 20.0
_PODS_SECONDS: Final = 0.2
"""After which the pods of a node are listed whose last owner knew others there than we do."""

_RENEW_BELOW: Final = 0.6
"""A Lease is renewed when less than this share of `renew_deadline` is left: the rest is for further tries."""

_AT_ONCE: Final = 8


class Lists(Protocol):
    """scheduler.shards.foreign_pods.PodLists."""

    def read_nodes(self, nodes: Sequence[str]) -> list[str]:
        """Let the tables know all pods of these nodes; returns the nodes of which they do."""

    def read_waiting(self) -> bool:
        """Let the tables know all pods that wait; returns whether they do."""


@dataclass(frozen=True, slots=True)
class ShardsSeen:
    """What this replica last saw: for the metrics and the service. holders: of each shard, '' = none."""

    members: tuple[str, ...]
    holders: Mapping[int, str]
    rooms: Mapping[int, float]
    owned: frozenset[int]
    taken_over: int
    trouble: str


class ShardKeeper:
    """
    locked      : holds the tables
    read_again  : see StateSource
    is_needed   : whether pods wait that only the leader may decide about; may take a while
    lists       : reads what was not followed
    unhealthy   : why this replica must not own anything, '' = it may
    version     : resourceVersion that the watch of pods has reached, 0 = not known
    event_version : that of the last event of a pod; all replicas get that event, but not the list or bookmark of one
    use         : called, with the lock held, when another dispatcher holds or other nodes are ours
    """

    def __init__(
        self,
        leases: LeaseSet,
        lease: LeaseOptions,
        options: ShardOptions,
        ownership: NodeOwnership,
        moves: NodeMoves,
        alone: AloneLeader,
        *,
        locked: Callable[[], AbstractContextManager[AssumingCluster]],
        read_again: Callable[[], Callable[[], bool]],
        unhealthy: Callable[[], str],
        leads: Callable[[], bool],
        lists: Lists,
        is_needed: Callable[[], bool],
        version: Callable[[], int],
        event_version: Callable[[], int],
        use: Callable[[Dispatcher], None],
        clock: Callable[[], float] = running_time,
    ) -> None:
        self._leases, self._lease, self._options = leases, lease, options
        self._ownership, self._moves, self._alone, self._locked = ownership, moves, alone, locked
        self._read_again, self._unhealthy, self._leads, self._is_needed = read_again, unhealthy, leads, is_needed
        self._version, self._use, self._lists, self._clock = version, use, lists, clock
        self._event_version = event_version
        self._waiting_are_known = True  # or pods that are ours now were not followed when they came
        self._names = shard_names(lease, options)
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lease")
        self._own_name = replica_name(lease, leases.identity)
        self._peers = Peers(leases, lease, clock)
        self._reading: tuple[set[int], float, Callable[[], bool]] | None = None
        self._ready: set[int] = set()
        self._leaving: dict[int, float] = {}
        self._published: tuple[dict[int, str], frozenset[int], bool, bool, bool] | None = None
        self._versions_used = -1, -1
        self._dispatcher = Dispatcher(())
        self._is_stale = False
        self._rooms: dict[int, float] = {}
        self._looked_at_rooms = -float("inf")
        self._gave_up_at: float | None = None
        self._taken_over, self._trouble, self._refused = 0, "not started", ""

    def may_write(self) -> bool:
        """Return whether this replica lives, as far as others can know. For any thread; a microsecond."""
        return self._leases.holds(self._own_name)

    def seen(self) -> ShardsSeen:
        """Return what the Leases said last. For any thread."""
        holders = {number: self._leases.live_holder(name) for number, name in enumerate(self._names)}
        return ShardsSeen(
            tuple(sorted(self._peers.live())),
            holders,
            dict(self._rooms),
            frozenset(self._ready),
            self._taken_over,
            self._trouble or self._refused,
        )

    def look_again(self) -> None:
        """Other replicas may decide about the waiting pods than before. Under the lock of the tables."""
        self._is_stale = True

    def step(self) -> None:
        """Do what is due; called every second by one thread."""
        if not self._leases.read():
            self._trouble = f"the Leases of shards cannot be read: {self._leases.last_error}"
            self._forget_lost()
            self._publish()
            return
        why = self._unhealthy() or self._peers.lag(self._version()) or self._other_count()
        if why != self._trouble:
            logger.log(logging.WARNING if why else logging.INFO, "shards", extra={"trouble": why or "none"})
        self._trouble = why
        if why:
            self._give_up()
            self._publish()
            return
        self._gave_up_at = None
        is_known = self._leases.holds(self._own_name)  # to all who read the Leases after us
        if not is_known:
            self._announce()
        self._forget_lost()
        self._measure()
        shards, members = self._states(), self._peers.live()
        self._give(to_give(self._leases.identity, members, shards))
        self._take(to_take(self._leases.identity, members, shards) if is_known else [])
        self._finish_reading()
        self._publish()
        self._moves.step(min(self._ready) if self._ready and self._leads() else -1)
        self._peers.delete_dead(may_delete=self._leads())

    def renew(self) -> None:
        """Renew what is held and due, at once; called every second by a thread that waits for nothing else.

        `step` waits for the lock of the tables: where the loop has much to do, for longer than a Lease lasts.
        """
        if self._unhealthy():
            return  # `step` gives everything back, or it expires
        due = _RENEW_BELOW * self._lease.renew_deadline
        held: dict[str, int | None] = {name: number for number, name in enumerate(self._names)}
        held[self._own_name] = None
        writes = [
            (name, self._annotations(number)) for name, number in held.items() if 0.0 < self._leases.left(name) < due
        ]
        list(self._threads.map(lambda write: self._leases.renew(*write), writes))

    def start(self) -> None:
        """Nothing: others call `step` and `renew`."""

    def stop(self) -> None:
        """Give everything back: others take it at once. To be called when nothing is bound any more."""
        self._step_down()
        list(self._threads.map(self._leases.release, (*self._names, self._own_name)))
        self._leases.delete(self._own_name)
        self._threads.shutdown(wait=False)

    # Inside

    def _annotations(self, number: int | None = None) -> dict[str, str]:
        said = {COUNT: str(self._options.count), PODS_VERSION: str(self._event_version())}
        room = None if number is None else self._rooms_known().get(number)
        if room is not None:
            said[ROOM] = f"{room:.6f}"
        return said

    def _announce(self) -> None:
        """Take our own Lease, for the first time or anew."""
        taken = self._leases.take(self._own_name, self._annotations())
        refused = "" if taken else f"the Lease of this replica cannot be written: {self._leases.last_error}"
        if refused and not self._refused:
            logger.warning("shards", extra={"trouble": refused})
        self._refused = refused

    def _other_count(self) -> str:
        """Two numbers of shards would give a node two owners: who owns none yet waits for the others to go."""
        owns = bool(self._ready) or self._reading is not None
        return "" if owns else self._peers.other_count(self._options.count)

    def _states(self) -> list[ShardState]:
        rooms = self._rooms_of_all()
        return [
            ShardState(number, self._leases.live_holder(name), rooms[number]) for number, name in enumerate(self._names)
        ]

    def _rooms_of_all(self) -> dict[int, float]:
        """With a mean of 1."""
        even = even_rooms(self._rooms_said())
        return {number: even.get(number, 1.0) for number in range(len(self._names))}

    def _rooms_said(self) -> dict[int, float]:
        """Every replica reckons with what the owner of a shard says, the owner itself, too: by figures that differ a
        little, each of two may send a unit to the other."""
        records = self._leases.records()
        known = {
            number: number_in(records[name].annotations.get(ROOM, ""))
            for number, name in enumerate(self._names)
            if name in records
        }
        return {number: room for number, room in known.items() if room >= 0}

    def _rooms_known(self) -> dict[int, float]:
        """The same, of our shards as measured last."""
        return self._rooms_said() | {number: room for number, room in self._rooms.items() if number in self._ready}

    def _give(self, numbers: list[int]) -> None:
        now = self._clock()
        for number in numbers:
            if number in self._ready and number not in self._leaving:
                self._leaving[number] = now
        if not self._leaving:
            return
        with self._locked():
            self._ownership.use(self._ready - self._leaving.keys())
            quiet = [one for one in self._leaving if self._ownership.is_quiet(self._ownership.nodes_in(one))]
        for number in quiet:
            del self._leaving[number]
            self._ready.discard(number)
            self._leases.release(self._names[number])
        for number in [one for one, since in self._leaving.items() if now - since > _LEAVING_SECONDS]:
            del self._leaving[number]  # a binding waits for long, for a volume perhaps: it stays for now

    def _take(self, numbers: list[int]) -> None:
        taken = set()
        records = self._leases.records()
        for number in numbers:
            name = self._names[number]
            before = records[name].holder if name in records else ""
            if self._leases.take(name, self._annotations(number)):
                taken.add(number)
                self._taken_over += before not in ("", self._leases.identity)
        if taken:
            logger.info("shards taken", extra={"shards": sorted(taken)})
            waiting = set() if self._reading is None else self._reading[0]
            self._reading = taken | waiting, self._clock(), self._read_again()

    def _finish_reading(self) -> None:
        """Shards are ours once the tables know what their last owner wrote."""
        since = None
        if self._reading is not None and self._reading[2]():
            numbers, since, _ = self._reading
            self._reading = None
            ready = {number for number in numbers if self._leases.holds(self._names[number])}
            self._ready |= ready
            if ready:
                self._looked_at_rooms = -float("inf")  # or the others go by what the last owner said for long
        with self._locked():
            self._ownership.welcome(read_since=since)
            overdue = self._ownership.overdue(_PODS_SECONDS)
        if overdue and (read := self._lists.read_nodes(overdue)):
            with self._locked():
                self._ownership.welcome(nodes=read)

    def _forget_lost(self) -> None:
        for number in [one for one in self._ready if not self._leases.holds(self._names[one])]:
            logger.warning("a shard is lost: its Lease was not renewed in time", extra={"shard": number})
            self._ready.discard(number)
            self._leaving.pop(number, None)
        if self._reading is not None:
            self._reading[0].intersection_update(
                [one for one in self._reading[0] if self._leases.holds(self._names[one])]
            )

    def _give_up(self) -> None:
        """Act for no shard from now on. Others may take ours once the bindings that we sent last have arrived."""
        now = self._clock()
        if self._gave_up_at is None:
            self._gave_up_at = now
            self._step_down()
        self._leases.release(self._own_name)
        if now - self._gave_up_at >= self._lease.duration - self._lease.renew_deadline:
            for name in self._names:
                self._leases.release(name)

    def _step_down(self) -> None:
        self._ready.clear()
        self._leaving.clear()
        self._reading = None
        for name in (*self._names, self._own_name):
            self._leases.step_down(name)
        self._moves.drop()

    def _publish(self) -> None:
        """Let the loop know who holds what, where that has changed."""
        holders = {
            number: holder for number, name in enumerate(self._names) if (holder := self._leases.live_holder(name))
        }
        usable = frozenset(self._ready - self._leaving.keys())
        now = dispatcher(holders, self._rooms_of_all())
        if self._alone.ends_soon() and self._is_needed():
            self._alone.ask()
        self._alone.begin(self._read_again)
        alone = self._alone.knows_all()
        leads = self._leads()  # one that begins to has left out pods that were the last leader's
        with self._locked() as cluster:
            self._ownership.use(usable)
            published = holders, usable, leads, alone, len(cluster.rooms) > 0
            is_other = self._is_stale or published != self._published or now.shards != self._dispatcher.shards
            # Pods may name a node that has come, or another room may be theirs. All know these pods.
            versions = self._ownership.version, cluster.rooms.version
            if is_other or versions != self._versions_used:
                self._published, self._dispatcher, self._versions_used, self._is_stale = published, now, versions, False
                self._waiting_are_known = self._waiting_are_known and not is_other
                self._use(now)
        if not self._waiting_are_known:
            self._waiting_are_known = self._lists.read_waiting()

    def _measure(self) -> None:
        """Look at the room of our shards, and begin to move nodes from one with much to one with little."""
        now = self._clock()
        if now - self._looked_at_rooms < self._options.balance_every:
            return
        self._looked_at_rooms = now
        with self._locked() as cluster:
            rooms, shards = node_rooms(cluster), self._ownership.shards().copy()
            own = np.flatnonzero(self._ownership.own())
            names = list(cluster.state.names)
        of_shards = shard_rooms(rooms, shards, len(self._names))
        self._rooms = {number: float(of_shards[number]) for number in self._ready}
        said = self._rooms_known()
        moves = nodes_to_move(
            {number: said.get(number, 0.0) for number in range(len(self._names))},
            sorted(self._ready - self._leaving.keys()),
            own,
            shards[own],
            rooms[own].min(axis=1) if len(own) else np.zeros(0),
            most_difference=self._options.most_difference,
            most=self._moves.room,
        )
        with self._locked():
            for row, to in moves:
                self._moves.begin(names[row], to)
