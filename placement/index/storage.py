"""Volumes, claims and what else decides where a pod with storage may go.

    volumes, claims, classes --> by name; FreeVolumes: what claims may still get
    pods that sit            --> DiskUsers, ClaimUsers
    both, attachments        --> AttachedVolumes: how many of each CSI driver a node has
    CSINodes                 --> limits of nodes

What a claim counts as follows from the claim, its volume and its class: when one of these changes it is counted anew.

Who is about to write a claim or a volume has it here as it will be (`assume`), so that every filter counts it; the next
state that the watch brings takes its place, as in assume_cache.go of kube-scheduler.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from base.arrays import Bools, Ints
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.constraints import NodeSelectorTerm
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import (
    CsiDriverInfo,
    CsiNodeInfo,
    StorageCapacityInfo,
    StorageClassInfo,
    VolumeAttachmentInfo,
    VolumeClaimInfo,
    VolumeInfo,
)
from placement.index.csi_translation import (
    CSI,
    AttachedVolume,
    disk_volume,
    provisioner_driver,
    volume_in_csi,
)
from placement.index.disk_users import ClaimUsers, DiskUsers
from placement.index.free_volumes import FreeVolumes, ProvisioningFailures
from placement.index.node_storage import AttachedVolumes, NodeStorage
from placement.index.topology_pool import TopologyPool

STORAGE_KINDS: Final[tuple[Kind, ...]] = (
    Kind.STORAGE_CLASSES,
    Kind.CSI_DRIVERS,
    Kind.CSI_NODES,
    Kind.VOLUMES,
    Kind.CLAIMS,
    Kind.VOLUME_ATTACHMENTS,
    Kind.STORAGE_CAPACITIES,
)

ClaimKey = tuple[str, str]

T = TypeVar("T")


class Storage:
    """Objects by name, and pods that use claims. All that is public is to be read only.

    volumes, classes, drivers : by name
    claims                    : by namespace and name
    free                      : volumes that claims may get
    disks, users              : pods that sit, by the disks they name and the claims they use
    listeners                 : notified of every claim and volume that is new, changed or gone, once it is in the
                                tables
    failures                  : where claims could not be provisioned lately
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.volumes: dict[str, VolumeInfo] = {}
        self.claims: dict[ClaimKey, VolumeClaimInfo] = {}
        self.classes: dict[str, StorageClassInfo] = {}
        self.drivers: dict[str, CsiDriverInfo] = {}
        self.free, self.disks, self.users = FreeVolumes(), DiskUsers(), ClaimUsers()
        self.listeners: list[Callable[[VolumeClaimInfo | VolumeInfo], None]] = []
        self.failures = ProvisioningFailures(clock=clock)
        self._assumed: dict[tuple[type, object], VolumeClaimInfo | VolumeInfo] = {}  # as the watch brought them
        self._csi_nodes: dict[str, CsiNodeInfo] = {}
        self._attachments: dict[str, VolumeAttachmentInfo] = {}
        self._capacities: dict[tuple[str, str], StorageCapacityInfo] = {}
        self._attached = AttachedVolumes()
        self._nodes = NodeStorage(self._attached)
        self._rooms: dict[str, TopologyPool] = {}  # by class: capacity of what nodes reach
        self._claims_of: dict[str, dict[ClaimKey, None]] = {}  # by the volume they name
        self._attachments_of: dict[str, dict[str, None]] = {}  # by volume
        self._counted: dict[ClaimKey, AttachedVolume | None] = {}  # claims in use, and as what they were counted

    # Objects

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """These are all objects of a kind."""
        kept = {_key(one) for one in objects}
        gone = [item for key, item in self._objects(kind).items() if key not in kept]
        for item in gone:
            self.delete(kind, item)
        for item in objects:
            self.put(kind, item)

    def put(self, kind: Kind, item: ApiObject) -> None:
        """An object is new or has changed."""
        if isinstance(item, VolumeClaimInfo | VolumeInfo):
            self._seen(item)
            return
        if self._objects(kind).get(_key(item)) == item:
            return
        match item:
            case StorageClassInfo():
                self._set_class(item.name, item)
            case CsiDriverInfo():
                self.drivers[item.name] = item
            case CsiNodeInfo():
                self._csi_nodes[item.name] = item
                self._nodes.set_csi_node(item.name, item)
            case StorageCapacityInfo():
                self._set_capacity((item.namespace, item.name), item)
            case VolumeAttachmentInfo():
                self._set_attachment(item.name, item)
            case _:
                pass

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """An object is gone."""
        match item:
            case VolumeInfo():
                self._assumed.pop((VolumeInfo, item.name), None)
                self._set_volume(item.name, None)
                self._tell(item)
            case VolumeClaimInfo():
                self._assumed.pop((VolumeClaimInfo, _key(item)), None)
                self._set_claim((item.namespace, item.name), None)
                self._tell(item)
            case StorageClassInfo():
                self._set_class(item.name, None)
            case CsiDriverInfo():
                self.drivers.pop(item.name, None)
            case CsiNodeInfo():
                self._csi_nodes.pop(item.name, None)
                self._nodes.set_csi_node(item.name, None)
            case StorageCapacityInfo():
                self._set_capacity((item.namespace, item.name), None)
            case VolumeAttachmentInfo():
                self._set_attachment(item.name, None)
            case _:
                pass

    # What is being written

    def assume(self, item: VolumeClaimInfo | VolumeInfo) -> None:
        """Count what is being written until the watch brings another state, or `revert`."""
        known = self._known(item)
        if known is not None:
            self._assumed.setdefault((type(item), _key(item)), known)
            self._set(item)

    def revert(self, item: VolumeClaimInfo | VolumeInfo) -> None:
        """It was not written after all; nothing if it is not assumed any more."""
        if self._known(item) is item:
            self._set(self._assumed.pop((type(item), _key(item)), item))

    def claim_as_seen(self, key: ClaimKey) -> VolumeClaimInfo | None:
        """A claim as the watch brought it last."""
        seen = self._assumed.get((VolumeClaimInfo, key))
        return seen if isinstance(seen, VolumeClaimInfo) else self.claims.get(key)

    def volume_as_seen(self, name: str) -> VolumeInfo | None:
        """A volume as the watch brought it last."""
        seen = self._assumed.get((VolumeInfo, name))
        return seen if isinstance(seen, VolumeInfo) else self.volumes.get(name)

    # Pods

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod with volumes sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
        for volume in pod.volumes:
            if volume.disk:
                self.disks.count(row, volume, sign)
                attached = disk_volume(volume.disk)
            else:
                key = (pod.namespace, volume.claim)
                if key not in self._counted:
                    self._counted[key] = self.attached_as(key)
                attached = self._counted[key]
                self.users.count(row, key, sign, is_ephemeral=volume.is_ephemeral)
                if key not in self.users:
                    del self._counted[key]
            if attached is not None:
                self._attached.add(row, attached, pods=sign)

    # What filters ask

    def attached_as(self, key: ClaimKey) -> AttachedVolume | None:
        """How the volume of a claim counts on a node with a CSINode; None = it does not.

        A claim without a volume counts as the one that its class will make: getCSIDriverInfo in
        framework/plugins/nodevolumelimits/csi.go.
        """
        claim = self.claims.get(key)
        if claim is None:
            return None
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return volume_in_csi(volume)
        storage_class = self.classes.get(claim.storage_class)
        driver = "" if storage_class is None else provisioner_driver(storage_class)
        return (driver, f"\0{claim.namespace}/{claim.name}") if driver else None

    def limits(self, driver: str, names: Sequence[str]) -> Ints:
        """(n_rows,) volumes of a driver that nodes take. names: of nodes by row."""
        self._nodes.place(names)
        return self._nodes.limits(driver, len(names))

    def lacks(self, driver: str, names: Sequence[str], *, native: bool) -> Bools:
        """(n_rows,) nodes that must not get volumes of a driver because they do not have it."""
        opted_in = self.drivers.get(driver)
        if opted_in is None or not opted_in.is_required:
            return np.zeros(len(names), dtype=bool)
        self._nodes.place(names)
        return self._nodes.lacks(driver, len(names), native=native)

    def attached(self, driver: str, names: Sequence[str]) -> Ints:
        """(n_rows,) volumes of a driver that nodes have. names: of nodes by row."""
        self._nodes.place(names)
        return self._attached.count(driver, len(names))

    def not_attached(self, volumes: Sequence[AttachedVolume], n_rows: int) -> Ints:
        """(n_rows,) how many of these volumes no pod of the node uses yet."""
        return self._attached.new(volumes, n_rows)

    def migrated(self, plugin: str, names: Sequence[str]) -> Bools:
        """(n_rows,) nodes that leave volumes of a plugin within Kubernetes to its CSI driver."""
        self._nodes.place(names)
        return self._nodes.migrated(plugin, len(names))

    def room(self, storage_class: str) -> TopologyPool:
        """Capacities that drivers report for a class."""
        return self._rooms.get(storage_class) or _NO_ROOM

    def is_empty(self) -> bool:
        """Whether nothing is left of objects and pods that went, for checks."""
        kept = (self.volumes, self.claims, self.classes, self.drivers, self._csi_nodes, self._attachments)
        derived = (self._capacities, self._rooms, self._claims_of, self._attachments_of, self._counted, self._assumed)
        parts = (self.free, self.disks, self.users, self._attached)
        return not any(kept) and not any(derived) and all(part.is_empty() for part in parts)

    # Changes of objects; None = gone

    def _objects(self, kind: Kind) -> Mapping[object, ApiObject]:
        tables: Mapping[Kind, Mapping[object, ApiObject]] = {
            Kind.VOLUMES: _view(self.volumes),
            Kind.CLAIMS: _view(self.claims),
            Kind.STORAGE_CLASSES: _view(self.classes),
            Kind.CSI_DRIVERS: _view(self.drivers),
            Kind.CSI_NODES: _view(self._csi_nodes),
            Kind.STORAGE_CAPACITIES: _view(self._capacities),
            Kind.VOLUME_ATTACHMENTS: _view(self._attachments),
        }
        return tables.get(kind, {})

    def _known(self, item: VolumeClaimInfo | VolumeInfo) -> VolumeClaimInfo | VolumeInfo | None:
        """The entry of a claim or volume."""
        if isinstance(item, VolumeClaimInfo):
            return self.claims.get((item.namespace, item.name))
        return self.volumes.get(item.name)

    def _seen(self, item: VolumeClaimInfo | VolumeInfo) -> None:
        """The watch brings a claim or volume. One that comes again as it was does not end what is assumed of it."""
        key = (type(item), _key(item))
        before = self._assumed.get(key)
        if before is not None:
            if before == item and before.resource_version == item.resource_version:
                return
            del self._assumed[key]
        if self._known(item) == item:
            if isinstance(item, VolumeClaimInfo):
                self.claims[item.namespace, item.name] = item
            else:
                self.volumes[item.name] = item
        else:
            self._set(item)
        self._tell(item)

    def _set(self, item: VolumeClaimInfo | VolumeInfo) -> None:
        if isinstance(item, VolumeClaimInfo):
            self._set_claim((item.namespace, item.name), item)
        else:
            self._set_volume(item.name, item)

    def _tell(self, item: VolumeClaimInfo | VolumeInfo) -> None:
        for listener in self.listeners:
            listener(item)

    def _set_volume(self, name: str, volume: VolumeInfo | None) -> None:
        before = _put_or_pop(self.volumes, name, volume)
        if before is not None:
            self.free.delete(before)
        if volume is not None:
            self.free.put(volume)
        for claim in self._claims_of.get(name, ()):
            self._count_anew(claim)
        for attachment in self._attachments_of.get(name, ()):
            self._place_attachment(attachment)

    def _set_claim(self, key: ClaimKey, claim: VolumeClaimInfo | None) -> None:
        before = _put_or_pop(self.claims, key, claim)
        if before is not None and before.volume:
            _forget(self._claims_of, before.volume, key)
        if claim is not None and claim.volume:
            self._claims_of.setdefault(claim.volume, {})[key] = None
        self._count_anew(key)

    def _set_class(self, name: str, storage_class: StorageClassInfo | None) -> None:
        _put_or_pop(self.classes, name, storage_class)
        for key in self._counted:
            claim = self.claims.get(key)
            if claim is not None and claim.storage_class == name:
                self._count_anew(key)

    def _set_capacity(self, key: tuple[str, str], capacity: StorageCapacityInfo | None) -> None:
        before = _put_or_pop(self._capacities, key, capacity)
        if before is not None and (pool := self._rooms.get(before.storage_class)) is not None:
            pool.delete(key)
            if not pool:
                del self._rooms[before.storage_class]
        if capacity is not None and capacity.largest is not None and capacity.topology is not None:
            required = capacity.topology.requirements
            terms = (NodeSelectorTerm(required),) if required else None
            self._rooms.setdefault(capacity.storage_class, TopologyPool()).put(key, math.ceil(capacity.largest), terms)

    def _set_attachment(self, name: str, attachment: VolumeAttachmentInfo | None) -> None:
        before = _put_or_pop(self._attachments, name, attachment)
        if before is not None:
            _forget(self._attachments_of, before.volume, name)
            self._nodes.set_attachment(before.node, name, None)
        if attachment is not None:
            self._attachments_of.setdefault(attachment.volume, {})[name] = None
            self._place_attachment(name)

    def _place_attachment(self, name: str) -> None:
        """Count an attachment as what its volume is now (getNodeVolumeAttachmentInfo in nodevolumelimits/csi.go)."""
        attachment = self._attachments[name]
        volume = self.volumes.get(attachment.volume)
        counts = volume is not None and volume.source.plugin == CSI and attachment.attacher
        attached = (attachment.attacher, volume.source.handle) if counts and volume is not None else None
        self._nodes.set_attachment(attachment.node, name, attached)

    def _count_anew(self, key: ClaimKey) -> None:
        if key not in self._counted:
            return
        before, now = self._counted[key], self.attached_as(key)
        if before == now:
            return
        self._counted[key] = now
        for row, uses in self.users.rows(key).items():
            if before is not None:
                self._attached.add(row, before, pods=-uses)
            if now is not None:
                self._attached.add(row, now, pods=uses)


_NO_ROOM: Final = TopologyPool()


def _key(item: ApiObject) -> object:
    match item:
        case VolumeClaimInfo() | StorageCapacityInfo():
            return (item.namespace, item.name)
        case _:
            return item.name


def _view(table: Mapping[object, T] | Mapping[str, T] | Mapping[tuple[str, str], T]) -> Mapping[object, T]:
    """Mappings are invariant in their keys; looked up by any key they are safe."""
    return table  # type: ignore[return-value]


def _put_or_pop(table: dict[Any, T], key: object, item: T | None) -> T | None:
    """Set or remove an entry; what was there before."""
    before = table.pop(key, None)
    if item is not None:
        table[key] = item
    return before


def _forget(table: dict[str, dict[T, None]], name: str, member: T) -> None:
    members = table.get(name)
    if members is not None:
        members.pop(member, None)
        if not members:
            del table[name]
