"""What a pod is to the machine groups of the nodes: its own, another owner's, or one that lends to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final

import numpy as np

from base.arrays import Ints
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.filters.pod_annotations import MACHINE_GROUP, names_in
from placement.index.node_labels import LabelColumn
from placement.node_rule_settings import Borrow, GroupOwner, MachineGroupOptions

BORROW: Final = ANNOTATION_PREFIX + "borrow"
"""Annotation of pods that others may drive away again: "true"."""


class GroupStanding(IntEnum):
    """Of a pod on a node, the better ones first."""

    OWN = 0  # of a group that it names, and may name
    PLAIN = 1  # of no group
    BORROWED = 2  # of a group that lends to it
    ELSEWHERE = 3  # of no group, and the pod names one that it is not to leave
    RESERVED = 4  # of a group that it does not name
    NOT_OWNER = 5  # of a group that it names, and that is not its owner's
    TOO_IMPORTANT = 6  # of a group that lends, but not to pods of this priority


class Membership:
    """The rules of the groups, looked up by name."""

    def __init__(self, groups: Sequence[MachineGroupOptions]) -> None:
        self._groups = {group.name: group for group in groups}
        self._lenders = tuple(group for group in groups if group.borrow is Borrow.IDLE)
        self._implied = tuple(group for group in groups if group.implied)

    def rule(self, name: str) -> MachineGroupOptions:
        """Return the rule of the group of this name; any pod may name a group that is not listed."""
        return self._groups.get(name) or _unlisted(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the groups that lend."""
        return tuple(group.name for group in self._lenders)

    @property
    def lenders(self) -> Sequence[MachineGroupOptions]:
        return self._lenders

    def named_by(self, pod: PodInfo) -> tuple[str, ...]:
        """Names of the groups that the pod asks for, whether it may or not."""
        named = names_in(pod, MACHINE_GROUP)
        if named or not self._implied:
            return named
        return tuple(group.name for group in self._implied if _is_owners(pod, group.owners))

    def owned_by(self, pod: PodInfo) -> tuple[str, ...]:
        """Of these, those whose machines are the pod's as well."""
        named = self.named_by(pod)
        return tuple(name for name in named if self._may_name(pod, self.rule(name)))

    def standing(self, pod: PodInfo, column: LabelColumn) -> Ints:
        """(n_rows,) Standing of the pod on each node. column: of the label MACHINE_GROUP."""
        named = self.named_by(pod)
        stays = any(self.rule(name).only for name in named)
        outside = GroupStanding.ELSEWHERE if stays else GroupStanding.PLAIN
        # An empty label is none. The last entry is that of nodes without the label, ABSENT.
        table = [self._in_group(pod, name, named, stays=stays) if name else outside for name in column.names]
        table.append(outside)
        return np.asarray(np.array(table, dtype=np.int64)[column.values])

    def _in_group(self, pod: PodInfo, name: str, named: Sequence[str], *, stays: bool) -> GroupStanding:
        group = self.rule(name)
        if name in named:
            return GroupStanding.OWN if self._may_name(pod, group) else GroupStanding.NOT_OWNER
        if stays or group.borrow is Borrow.NEVER or not asks_to_borrow(pod):
            return GroupStanding.RESERVED
        return GroupStanding.BORROWED if pod.priority < group.borrow_below else GroupStanding.TOO_IMPORTANT

    @staticmethod
    def _may_name(pod: PodInfo, group: MachineGroupOptions) -> bool:
        return not group.owners or _is_owners(pod, group.owners)


@lru_cache(maxsize=4096)  # asked for every group of nodes and pod: validating a new one each time would cost more
def _unlisted(name: str) -> MachineGroupOptions:
    return MachineGroupOptions(name=name)


def asks_to_borrow(pod: PodInfo) -> bool:
    """Whether the pod says that it may be driven away again."""
    return pod.annotations.get(BORROW, "").strip().lower() == "true"


def _is_owners(pod: PodInfo, owners: Iterable[GroupOwner]) -> bool:
    return any(
        (not owner.namespaces or pod.namespace in owner.namespaces)
        and all(pod.labels.get(key) == value for key, value in owner.labels.items())
        for owner in owners
    )
