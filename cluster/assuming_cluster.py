"""The tracked cluster with pods that are assumed to be bound: in all its tables, and taken back when they were not.

Room that is held for pods still to come (held_rooms.py) is in all its tables, too, as a stand-in: a pod that no list of
the API server has. It leaves the tables in the step in which a pod takes the room, and is back when that pod is not
bound after all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cluster.assumed_pods import AssumedPods
from cluster.held_rooms import HeldRoom, HeldRooms
from cluster.monotonic_time import MonotonicTime
from cluster.options import TableOptions
from cluster.tables.changes import Change, PodChange
from cluster.tracking import TrackedCluster
from cluster.usable_nodes import NodeUsability
from kube.decoding.decoding import ApiObject, Kind
from kube.decoding.jobs import JobInfo
from kube.objects.counted_pods import sits, waits
from kube.objects.objects import NodeInfo, PodInfo, ReplicaSetInfo
from kube.objects.pod_shape import on_node, shape_of


@dataclass(slots=True)
class _Run:
    """Alike pods that are assumed at once, by UID and in order. services: their indexes, all of one kind."""

    shape: tuple[Any, ...] = ()
    kind: tuple[int, bool] | None = None
    services: set[int] = field(default_factory=set)
    pods: dict[str, PodInfo] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)

    def add(self, pod: PodInfo, row: int, service: int) -> None:
        self.services.add(service)
        self.pods[pod.uid] = pod
        self.rows.append(row)


class AssumingCluster(TrackedCluster):
    """A cluster that knows assumed pods, too. Takes what the watch reports about pods.

    on_overdue : listeners that are called with every tick with the UIDs of all pods that were assumed for long enough;
                 one of them keeps or forgets each. Under the lock, by any thread. Without one they are forgotten, as
                 those that were charged always are
    rooms      : held for pods still to come; to be read only
    on_new_pod : listeners that are called with a pod that the tables did not know, once they do. They may assume and
                 forget pods, which those of changes may not: others would hear of these in another order. Under the
                 lock
    """

    def __init__(
        self,
        options: TableOptions,
        *,
        now: float,
        time: MonotonicTime | None = None,
        usable_nodes: Callable[[TrackedCluster], NodeUsability] | None = None,
    ) -> None:
        """time: by which assumptions end; None = by `now`, as it is set; usable_nodes: see TrackedCluster."""
        super().__init__(options, now=now, usable_nodes=usable_nodes)
        self.assumed, self._time = AssumedPods(), time
        self.rooms = HeldRooms(now)
        self._stand_ins: set[str] = set()  # UIDs of those in the tables
        self.on_overdue: list[Callable[[Sequence[str]], None]] = []
        self.on_new_pod: list[Callable[[PodInfo], None]] = []
        self._charged: set[str] = set()  # assumed on a guess

    def tick(self, now: float) -> None:
        """Time has passed (or was set back)."""
        super().tick(now)
        overdue = self.assumed.over(self._own_now())
        self.forget_all([uid for uid in overdue if uid in self._charged or not self.on_overdue])
        if others := [uid for uid in overdue if uid in self.assumed]:
            for ask in self.on_overdue:
                ask(others)
        self._charged = {uid for uid in self._charged if uid in self.assumed}
        for uid in self.rooms.tick(now):
            self.drop_room(uid)

    def put(self, item: ApiObject) -> None:
        """The watch says that an object is new or has changed."""
        match item:
            case NodeInfo():
                self.apply(self.state.put_node(item))
            case PodInfo():
                self.put_pod(item)
            case ReplicaSetInfo():
                self.apply(self.state.put_replica_set(item))
            case JobInfo():
                self.apply(self.state.put_job(item))
            case _:
                raise ValueError(f"{type(item).__name__} is no node, pod, ReplicaSet or Job: a follower has to take it")

    def delete(self, item: ApiObject) -> None:
        """The watch says that an object is gone."""
        match item:
            case NodeInfo():
                self.apply(self.state.delete_node(item.name))
            case PodInfo():
                self.delete_pod(item.uid)
            case ReplicaSetInfo():
                self.apply(self.state.delete_replica_set(item.uid))
            case JobInfo():
                self.apply(self.state.delete_job(item.uid))
            case _:
                raise ValueError(f"{type(item).__name__} is no node, pod, ReplicaSet or Job: a follower has to take it")

    def put_pod(self, pod: PodInfo) -> None:
        """The watch says that a pod is new or has changed."""
        is_new = pod.uid not in self.state.pods
        left = self._take_over(pod)
        self._put_seen(pod)
        if left is not None:
            self.hold_room(left)
        if is_new:
            for listener in self.on_new_pod:
                listener(pod)

    def delete_pod(self, uid: str) -> None:
        """The watch says that a pod is gone."""
        was_assumed = uid in self.assumed
        self.assumed.gone(uid)
        self.apply(self.state.delete_pod(uid))
        self.rooms.forget(uid)
        if was_assumed:
            self._return_room(uid)

    def replace_pods(self, pods: Sequence[PodInfo]) -> None:
        """A complete list of pods of the API server. Stand-ins are not among them, and stay."""
        listed = {pod.uid for pod in pods}
        for uid in set(self.assumed.uids()).difference(listed, self._stand_ins):
            self.assumed.gone(uid)
            self._return_room(uid)
        self.rooms.forget_others(listed)
        left = [room for pod in pods if sits(pod) and (room := self._left_room(pod.uid, pod.node)) is not None]
        for pod in pods if len(self.rooms) else ():
            if sits(pod) and self.rooms.taken_by(pod.uid) is not None:
                self.rooms.serve(pod.uid)
        self._take_over_all(self.rooms, pods)
        confirmed: list[Change] = []
        as_assumed = []
        for pod in pods:
            now, was_assumed = self.assumed.seen(pod)
            if was_assumed:
                self._end_wait(now)
            elif now is not pod:
                now = self._without_new_kinds(now)
            as_assumed.append(now)
            if was_assumed and self.state.pods.get(pod.uid) == now:
                confirmed += self._confirmed(now)
        as_assumed += [self.state.pods[uid] for uid in self._stand_ins if uid in self.state.pods]
        self.apply([*self.state.replace(Kind.PODS, as_assumed), *confirmed])
        for room in left:
            self.hold_room(room)

    def assume(self, pod: PodInfo, node: str, until: float) -> None:
        """The pod will probably be bound to the node: reckon with it until the watch says so, or `until`."""
        namesake = self.state.find_pod(pod.namespace, pod.name)
        if namesake is not None and namesake.uid != pod.uid:
            return  # the caller must not drive out a pod that exists
        self._charged.discard(pod.uid)
        known, own = self.state.pods.get(pod.uid), self._own(until)
        assumed = self.assumed.assume(pod, known, node, own, now=self._own_now())
        if assumed is None:
            return
        left = self._left_room(pod.uid, node)
        self._take(self.rooms.owed(assumed, node), assumed)
        self.apply(self.state.put_pod(self._without_new_kinds(assumed)))
        if left is not None:
            self.hold_room(left)

    def charge(self, pod: PodInfo, node: str, until: float) -> None:
        """The same on a guess, by a component that does not decide where the pod goes: forgotten when its time is
        over, whatever `on_overdue` does about the pods of others."""
        self.assume(pod, node, until)
        if pod.uid in self.assumed:
            self._charged.add(pod.uid)

    def assume_all(self, pods: Sequence[PodInfo], rows: Sequence[int], until: float) -> None:
        """The same as `assume` of each in this order, and much faster for pods that wait here and are alike.

        rows : (n_pods,) of the nodes they are to go to, all in use
        """
        run = _Run()
        for pod, row in zip(pods, rows, strict=True):
            if self.rooms.owed(pod, self.state.names[row]) is not None:
                self._assume_run(run, until)
                run = _Run()
                self.assume(pod, self.state.names[row], until)
                continue
            uid, known = pod.uid, self.state.pods.get(pod.uid)
            is_known = known is pod or (known is not None and _name(known) == _name(pod))
            if known is not None and is_known and uid not in run.pods:
                service, shape = self.state.service_index(uid), shape_of(known)
                if shape == run.shape and (service in run.services or self._kind(known, service) == run.kind):
                    run.add(known, row, service)
                    continue
                kind = self._kind(known, service) if waits(known) and known.started is None else None
                if kind is not None:
                    self._assume_run(run, until)
                    run = _Run(shape, kind)
                    run.add(known, row, service)
                    continue
            self._assume_run(run, until)
            run = _Run()
            self.assume(pod, self.state.names[row], until)
        self._assume_run(run, until)

    def keep(self, uid: str, until: float) -> None:
        """What was assumed is to last until then (unix seconds); nothing if it was not."""
        self.assumed.keep(uid, self._own(until), now=self._own_now())

    def forget_all(self, uids: Sequence[str]) -> None:
        """`forget` each."""
        for uid in uids:
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """The pod was not bound after all, as far as is known; nothing if it was not assumed."""
        if uid in self.assumed:
            pod = self.assumed.forget(uid)
            self.apply(self.state.delete_pod(uid) if pod is None else self.state.put_pod(pod))
            self._return_room(uid)

    # Room for pods still to come

    def put_stand_in(self, stand_in: PodInfo) -> None:
        """A Reservation waits for its node, or has changed while it does."""
        self.rooms.drop(stand_in.uid)
        self._stand_ins.add(stand_in.uid)
        self._put_seen(stand_in)

    def hold_room(self, room: HeldRoom) -> None:
        """The room is held on its node from now on, unless its time is over or a pod there has taken it."""
        self._hold(room)
        self._take_over_all((room,), self._bound_pods())

    def replace_rooms(self, rooms: Sequence[HeldRoom], waiting: Sequence[PodInfo]) -> None:
        """These are all rooms and all stand-ins that wait for their node: what is not among them is dropped."""
        kept = {room.uid for room in rooms} | {stand_in.uid for stand_in in waiting}
        for uid in {*self._stand_ins, *(room.uid for room in self.rooms)} - kept:
            self.drop_room(uid)
        for stand_in in waiting:
            self.put_stand_in(stand_in)
        for room in rooms:
            self._hold(room)
        self._take_over_all(rooms, self._bound_pods())

    def drop_room(self, uid: str) -> None:
        """The Reservation holds nothing any more: it is gone, over, or a pod has taken it."""
        self.rooms.drop(uid)
        self._drop_stand_in(uid)

    # Inside

    def _put_seen(self, pod: PodInfo) -> None:
        seen, was_assumed = self.assumed.seen(pod)
        if was_assumed:
            self._end_wait(seen)
        elif seen is not pod:
            seen = self._without_new_kinds(seen)
        self.apply(self.state.put_pod(seen) or (self._confirmed(seen) if was_assumed else ()))

    def _hold(self, room: HeldRoom) -> None:
        before = self.rooms.get(room.uid)
        if before is not None and before.stand_in.node != room.stand_in.node:
            self.rooms.drop(room.uid)
        self.rooms.put(room)
        if self.rooms.taker(room.uid) is not None:
            return
        if self.now >= room.until:
            # Until the next tick a pod can still be found that took it in time.
            self._drop_stand_in(room.uid)
        else:
            self._stand_ins.add(room.uid)
            self._put_seen(room.stand_in)

    def _drop_stand_in(self, uid: str) -> None:
        if uid in self._stand_ins:
            self._stand_ins.discard(uid)
            self.assumed.gone(uid)
            self.apply(self.state.delete_pod(uid))

    def _take(self, room: HeldRoom | None, pod: PodInfo) -> None:
        """The stand-in leaves before the pod comes: nothing is counted twice."""
        if room is not None:
            self.rooms.take(room, pod)
            self._drop_stand_in(room.uid)

    def _take_over(self, pod: PodInfo) -> HeldRoom | None:
        """Let a pod that the API server has bound take the room that it came for. Returns the room of another node
        that it was assumed to take.
        """
        if not len(self.rooms) or not sits(pod):
            return None
        left = self._left_room(pod.uid, pod.node)
        self._take(self.rooms.taken_where_bound(pod), pod)
        if self.rooms.taken_by(pod.uid) is not None:
            self.rooms.serve(pod.uid)
        return left

    def _take_over_all(self, rooms: Iterable[HeldRoom], pods: Iterable[PodInfo]) -> None:
        if len(self.rooms):
            for room, pod in self.rooms.takers_among(rooms, pods):
                self._take(room, pod)
                self.rooms.serve(pod.uid)

    def _left_room(self, pod: str, node: str) -> HeldRoom | None:
        """Return the room that a pod does not take because it goes to another node."""
        uid = self.rooms.taken_by(pod)
        room = None if uid is None else self.rooms.get(uid)
        return None if room is None or room.stand_in.node == node else self.rooms.returned(pod)

    def _return_room(self, pod: str) -> None:
        """The pod is not bound after all: its room is held again."""
        if (room := self.rooms.returned(pod)) is not None:
            self.hold_room(room)

    def _bound_pods(self) -> Iterator[PodInfo]:
        return (self.state.pods[uid] for uid in self.state.seat_of if uid not in self.assumed)

    def _own(self, unix: float) -> float:
        return unix if self._time is None else self._time.own(unix)

    def _own_now(self) -> float:
        return self.now if self._time is None else self._time.now()

    def _kind(self, pod: PodInfo, service: int) -> tuple[int, bool] | None:
        """Return what like pods must have in common to be placed at once: profile, and whether they come with the node.
        None = its profile is still to be made, by the replicas that there are when its turn comes.
        """
        key = self.state.services[service]
        if self.predicted is None:
            return -1, key.belongs_to_node
        profile = self.predicted.known_profile(pod, key, self.expected_run(pod, key))
        return None if profile is None else (profile, key.belongs_to_node)

    def _assume_run(self, run: _Run, until: float) -> None:
        if not run.pods:
            return
        self._charged.difference_update(run.pods)
        pods, names = list(run.pods.values()), self.state.names
        assumed = self.assumed.assume_all(
            self._without_new_kinds(pods[0]),
            pods,
            [names[row] for row in run.rows],
            self._own(until),
            now=self._own_now(),
        )
        self.apply([self.state.seat_all(assumed, run.rows)])

    def _end_wait(self, pod: PodInfo) -> None:
        """End the wait of a pod that is bound.

        If it is bound elsewhere, it never ran where it was assumed. Its leaving there must neither look like the
        departure of a running pod, nor be reported as more than the end of an assumption.
        """
        known = self.state.pods[pod.uid]
        if known.node != pod.node:
            self.apply(self.state.put_pod(on_node(known, "")))
        self.assumed.gone(pod.uid)

    def _without_new_kinds(self, pod: PodInfo) -> PodInfo:
        """Drop made-up resources: a client may ask about a pod with thousands of them, and none gets a column."""
        kinds = self.state.kinds
        if all(kind in kinds for kind in pod.requests):
            return pod
        return replace(pod, requests={kind: amount for kind, amount in pod.requests.items() if kind in kinds})

    def _confirmed(self, pod: PodInfo) -> list[Change]:
        """Return the changes to report of a pod that was bound just where it was assumed: nothing else changes."""
        seat = self.state.seat_of.get(pod.uid)
        return [] if seat is None else [PodChange(pod, seat, seat)]


def _name(pod: PodInfo) -> tuple[str, str]:
    return pod.namespace, pod.name
