"""Claims, classes and devices as every filter counts them, including what is about to be written.

    watch ----------> claims, slices, classes --+
    reserve --------> allocations in flight  ---+--> which devices are used, which rows have changed
    our own writes -> claims, ahead of the watch

All of it is changed and read under the lock of the tables. What the watch brings late does not undo what was written:
of one claim the state with the highest resourceVersion counts, which is a number since Kubernetes 1.35 (KEP-5504).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import numpy as np

from base.arrays import Ints
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, NodeAdded, NodeChanged, NodeRemoved, PodChange
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from kube.objects.watched_objects import is_older
from profiles.gpu.dra.allocation_status import MadeAllocation
from profiles.gpu.dra.device_pools import DeviceInventory, TaintedSlices
from profiles.gpu.dra.dra_objects import (
    AllocatedDevice,
    Allocation,
    ClaimKey,
    ClassInfo,
    DeviceId,
    ResourceClaimInfo,
    SliceInfo,
    TaintRule,
)
from profiles.gpu.dra.extended_resources import classes_by_resource

T = TypeVar("T")


@dataclass(slots=True)
class ClaimInFlight:
    """An allocation that is not known to be in the API server.

    uid   : of the claim
    users : UIDs of pods that are to use it; none = it is being released
    """

    uid: str
    made: MadeAllocation
    users: set[str] = field(default_factory=set)


class DraTable(NodesAndPodsOnly):
    """Implements Follower, for the rows of nodes. `claims`, `slices`, `classes` and `taint_rules` are the sinks of
    their watches.

    on_claim   : called with a pod whose claim was created; under the lock
    on_room    : called if claims that could not be allocated may be now: one was released, a class or slice has
                 changed; under the lock, only if a pod was rejected since the last call
    on_devices : called with the names of nodes, None = all, whose devices, or their users, changed; under the lock
    on_pod     : called with each pod with claims that has changed, or is gone; under the lock
    """

    def __init__(
        self,
        state: ClusterState,
        locked: Callable[[], AbstractContextManager[object]],
        class_resources: dict[str, str] | None = None,
    ) -> None:
        """
        locked          : takes the lock of the tables
        class_resources : is kept up to date: name of the DeviceClass by extended resource, of those that have one
        """
        self.state, self.locked = state, locked
        self.on_claim: list[Callable[[PodInfo], None]] = []
        self.on_room: list[Callable[[], None]] = []
        self.on_pod: list[Callable[[PodInfo], None]] = []
        self.on_devices: list[Callable[[Collection[str] | None], None]] = []
        self.inventory = DeviceInventory()
        self.class_of: dict[str, ClassInfo] = {}
        self.used: dict[DeviceId, set[ClaimKey]] = {}
        self.shares: dict[DeviceId, dict[tuple[ClaimKey, str], Mapping[str, float]]] = {}  # what each consumes
        self.version = 1
        self.nodes_version = 1  # another number whenever a node has changed
        self.class_resources = {} if class_resources is None else class_resources
        self.in_flight: dict[ClaimKey, ClaimInFlight] = {}
        self.made: set[str] = set()  # UIDs of claims that were allocated here for pods that are not bound yet
        self._claims: dict[ClaimKey, ResourceClaimInfo] = {}
        self._extended: dict[str, ClaimKey] = {}  # by UID of the pod that they were made for
        self._row_version: Ints = np.ones(0, dtype=np.int64)
        self._awaited: dict[ClaimKey, dict[str, PodInfo]] = {}
        self._somebody_waits = False
        self._tainted = TaintedSlices()
        self.claims: Final = _Sink(self, self._replace_claims, self._put_claim, self._delete_claim)
        self.slices: Final = _Sink(self, self._replace_slices, self._put_slice, self._delete_slice)
        self.taint_rules: Final = _Sink(self, self._replace_rules, self._put_rule, self._delete_rule)
        self.classes: Final = _Sink(self, self._replace_classes, self._put_class, self._delete_class)

    # What there is

    def claim(self, namespace: str, name: str) -> ResourceClaimInfo | None:
        """As it was last read or written."""
        return self._claims.get((namespace, name))

    def extended_claim_of(self, pod: PodInfo) -> ResourceClaimInfo | None:
        """That a scheduler made for its extended resources."""
        key = self._extended.get(pod.uid)
        return None if key is None else self._claims.get(key)

    def all_claims(self) -> Iterable[ResourceClaimInfo]:
        return self._claims.values()

    def allocation_of(self, claim: ResourceClaimInfo) -> Allocation | None:
        """That it has, or is about to have."""
        if claim.allocation is not None:
            return claim.allocation
        flight = self.in_flight.get(claim.key)
        return flight.made.allocation if flight is not None and flight.uid == claim.uid else None

    @property
    def row_versions(self) -> Ints:
        """(n_rows,) another number whenever something has changed that decides what a node can be given."""
        missing = self.state.n_rows - len(self._row_version)
        if missing > 0:
            more = np.full(missing, self.version, dtype=np.int64)
            self._row_version = np.concatenate([self._row_version, more])
        return self._row_version[: self.state.n_rows]

    # What is about to be

    def reserve(self, claim: ResourceClaimInfo, made: MadeAllocation, user: str) -> None:
        """The devices are used from now on."""
        self.in_flight[claim.key] = ClaimInFlight(claim.uid, made, {user})
        self._use(claim.key, made.allocation, +1)

    def forget(self, key: ClaimKey) -> None:
        """What was in flight is in the API server, or will not be."""
        flight = self.in_flight.pop(key, None)
        if flight is None:
            return
        self._use(key, flight.made.allocation, -1)
        self.room()

    def created(self, key: ClaimKey, claim: ResourceClaimInfo) -> None:
        """The API server has a claim, not allocated yet, that was reckoned with under another key."""
        self._put_claim(claim)
        flight = self.in_flight.pop(key, None)
        if flight is None:
            return
        self._use(key, flight.made.allocation, -1)
        self.in_flight[claim.key] = ClaimInFlight(claim.uid, flight.made, flight.users)
        self._use(claim.key, flight.made.allocation, +1)

    def written(self, claim: ResourceClaimInfo) -> None:
        """The API server has it like this."""
        self._put_claim(claim)

    # Who waits

    def await_claim(self, key: ClaimKey, pod: PodInfo) -> None:
        """Have `on_claim` called once the claim exists."""
        self._awaited.setdefault(key, {})[pod.uid] = pod

    def was_rejected(self) -> None:
        """Have `on_room` called once something changes."""
        self._somebody_waits = True

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        """Nodes: labels decide where devices can be used from. Pods that are gone wait for nothing."""
        rows = [change.row for change in changes if isinstance(change, NodeAdded | NodeChanged | NodeRemoved)]
        if rows:
            self.nodes_version += 1
            self.version += 1
            versions = self.row_versions
            versions[[row for row in rows if row < len(versions)]] = self.version
        for change in changes:
            if isinstance(change, PodChange) and (change.pod.resource_claims or change.pod.device_asks):
                if change.pod.uid not in self.state.pods:
                    self._wait_no_more(change.pod)
                for listener in self.on_pod:
                    listener(change.pod)

    def rebuild(self) -> None:
        """All rows are new."""
        self.nodes_version += 1
        self._touch(None)

    def _wait_no_more(self, pod: PodInfo) -> None:
        for key in {(pod.namespace, one.claim) for one in pod.resource_claims if one.claim}:
            waiting = self._awaited.get(key, {})
            if waiting.pop(pod.uid, None) is not None and not waiting:
                del self._awaited[key]

    # Claims

    def _replace_claims(self, objects: Sequence[ResourceClaimInfo]) -> None:
        listed = {one.key: one for one in objects}
        for key, before in self._claims.items():
            now = listed.get(key)
            if now is not None and _is_older(now, before):
                listed[key] = before
        gone = [one for key, one in self._claims.items() if key not in listed]
        for one in gone:
            self._delete_claim(one)
        for one in listed.values():
            self._put_claim(one)

    def _put_claim(self, now: ResourceClaimInfo) -> None:
        before = self._claims.get(now.key)
        if before is not None and _is_older(now, before):
            return
        flight = self.in_flight.get(now.key)
        if before is not None and before.uid != now.uid:
            self._delete_claim(before)
            before, flight = None, None
        if before is not None and before.allocation is not None:
            self._use(now.key, before.allocation, -1)
        elif flight is not None and now.allocation is not None:
            del self.in_flight[now.key]
            self._use(now.key, flight.made.allocation, -1)
        self._claims[now.key] = now
        if now.extended_for:
            self._extended[now.extended_for] = now.key
        if now.allocation is not None:
            self._use(now.key, now.allocation, +1)
        was_given_back = before is not None and before.allocation is not None and now.allocation is None
        if was_given_back:
            self.made.discard(now.uid)
        if was_given_back or (before is not None and len(now.consumers) < len(before.consumers)):
            self.room()
        for pod in self._awaited.pop(now.key, {}).values():
            for listener in self.on_claim:
                listener(pod)

    def _delete_claim(self, one: ResourceClaimInfo) -> None:
        before = self._claims.get(one.key)
        if before is None or before.uid != one.uid:
            return
        del self._claims[one.key]
        flight = self.in_flight.pop(one.key, None)
        held = before.allocation or (flight.made.allocation if flight is not None else None)
        self.made.discard(before.uid)
        if self._extended.get(before.extended_for) == one.key:
            del self._extended[before.extended_for]
        if held is not None:
            self._use(one.key, held, -1)
        if held is not None or before.extended_for:
            self.room()

    def _use(self, key: ClaimKey, allocation: Allocation, sign: int) -> None:
        """Count the devices in use. Devices for administrators belong to no pod."""
        touched: set[str] | None = set()
        for one in allocation.devices:
            if one.is_admin:
                continue
            if one.share:
                self._share(key, one, sign)
            elif sign > 0:
                self.used.setdefault(one.id, set()).add(key)
            elif key in (users := self.used.get(one.id, set())):
                users.discard(key)
                if not users:
                    del self.used[one.id]
            nodes = self.inventory.nodes_of(one.id.pool_id)
            touched = None if touched is None or nodes is None else touched | nodes
        self._touch(touched)

    def _share(self, key: ClaimKey, one: AllocatedDevice, sign: int) -> None:
        of_device = self.shares.setdefault(one.id, {})
        if sign > 0:
            of_device[key, one.share] = dict(one.consumed)
        else:
            of_device.pop((key, one.share), None)
        if not of_device:
            del self.shares[one.id]

    # Slices and classes

    def _replace_slices(self, objects: Sequence[SliceInfo]) -> None:
        self.inventory.replace(self._tainted.replace_slices(objects))
        self._touch(None)
        self.room()

    def _put_slice(self, one: SliceInfo) -> None:
        self._put_slices([self._tainted.put_slice(one)])

    def _put_slices(self, slices: Sequence[SliceInfo]) -> None:
        for one in slices:
            self._touch(self.inventory.put(one))
        if slices:
            self.room()

    def _replace_rules(self, objects: Sequence[TaintRule]) -> None:
        self._put_slices(self._tainted.replace_rules(objects))

    def _put_rule(self, one: TaintRule) -> None:
        self._put_slices(self._tainted.put_rule(one))

    def _delete_rule(self, one: TaintRule) -> None:
        self._put_slices(self._tainted.delete_rule(one))

    def _delete_slice(self, one: SliceInfo) -> None:
        self._tainted.delete_slice(one)
        self._touch(self.inventory.delete(one))
        self.room()

    def _replace_classes(self, objects: Sequence[ClassInfo]) -> None:
        self.class_of = {one.name: one for one in objects}
        self._classes_changed()

    def _put_class(self, one: ClassInfo) -> None:
        self.class_of[one.name] = one
        self._classes_changed()

    def _delete_class(self, one: ClassInfo) -> None:
        self.class_of.pop(one.name, None)
        self._classes_changed()

    def _classes_changed(self) -> None:
        """Pods that NodeResourcesFit rejected for a resource that a class offers now may be placed."""
        before, now = dict(self.class_resources), classes_by_resource(self.class_of.values())
        self.class_resources.clear()
        self.class_resources.update(now)
        self._touch(None)
        self.room()
        new = now.keys() - before.keys()
        waiting = [
            pod
            for pod in (self.state.pods.values() if new and self.on_claim else ())
            if pod.device_asks and not pod.node and any(ask.resource in new for ask in pod.device_asks)
        ]
        for pod in waiting:
            for listener in self.on_claim:
                listener(pod)

    def _touch(self, nodes: set[str] | None) -> None:
        """None = all."""
        if nodes is not None and not nodes:
            return
        self.version += 1
        versions = self.row_versions
        if nodes is None:
            versions[:] = self.version
        else:
            versions[[row for row in map(self.state.row_of.get, nodes) if row is not None]] = self.version
        for listener in self.on_devices:
            listener(nodes)

    def room(self) -> None:
        """What was rejected may fit now."""
        if self._somebody_waits:
            self._somebody_waits = False
            for listener in self.on_room:
                listener()


class _Sink(Generic[T]):
    """Implements ResourceSink; called by the thread that watches."""

    def __init__(
        self,
        table: DraTable,
        replace: Callable[[Sequence[T]], None],
        put: Callable[[T], None],
        delete: Callable[[T], None],
    ) -> None:
        self._table, self._replace, self._put, self._delete = table, replace, put, delete

    def replace(self, objects: Sequence[T]) -> None:
        with self._table.locked():
            self._replace(objects)

    def put(self, obj: T) -> None:
        """One is new or has changed."""
        with self._table.locked():
            self._put(obj)

    def delete(self, obj: T) -> None:
        with self._table.locked():
            self._delete(obj)


def _is_older(one: ResourceClaimInfo, other: ResourceClaimInfo) -> bool:
    return one.uid == other.uid and is_older(one.resource_version, other.resource_version)
