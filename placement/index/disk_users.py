"""Pods that name disks themselves, and pods that use claims: which of them are on which node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from base.arrays import Bools
from kube.objects.constraints import PodVolume

ClaimKey = tuple[str, str]


class DiskUsers:
    """By disk and row: how many pods mount it read-only, and how many so that they write."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, ...], dict[int, tuple[int, int]]] = {}

    def count(self, row: int, volume: PodVolume, sign: int) -> None:
        """A pod on the node of a row mounts the disk, or no longer."""
        change = (sign, 0) if volume.disk_read_only else (0, sign)
        for disk in _disks(volume):
            rows = self._users.setdefault(disk, {})
            before = rows.get(row, (0, 0))
            after = (before[0] + change[0], before[1] + change[1])
            if after != (0, 0):
                rows[row] = after
            else:
                rows.pop(row, None)
                if not rows:
                    del self._users[disk]

    def conflicts(self, volume: PodVolume, found: Bools) -> None:
        """Mark in (n_rows,) nodes where a pod mounts the disk in a way that excludes this one: read-only goes
        together only with read-only."""
        for disk in _disks(volume):
            for row, (_, writers) in self._users.get(disk, {}).items():
                if (writers or not volume.disk_read_only) and row < len(found):
                    found[row] = True

    def is_empty(self) -> bool:
        """Whether no pod is left."""
        return not self._users


class ClaimUsers:
    """By claim and row: how many volumes of pods name the claim, and how many had it made for them."""

    def __init__(self) -> None:
        self._users: dict[ClaimKey, dict[int, tuple[int, int]]] = {}

    def count(self, row: int, claim: ClaimKey, sign: int, *, is_ephemeral: bool) -> None:
        """A pod on the node of a row uses a claim, or no longer."""
        rows = self._users.setdefault(claim, {})
        named, made = rows.get(row, (0, 0))
        after = (named, made + sign) if is_ephemeral else (named + sign, made)
        if after != (0, 0):
            rows[row] = after
        else:
            rows.pop(row, None)
            if not rows:
                del self._users[claim]

    def __contains__(self, claim: ClaimKey) -> bool:
        return claim in self._users

    def __iter__(self) -> Iterator[ClaimKey]:
        return iter(self._users)

    def is_empty(self) -> bool:
        """Whether no pod is left."""
        return not self._users

    def rows(self, claim: ClaimKey) -> Mapping[int, int]:
        """Volumes that use it, by row."""
        return {row: named + made for row, (named, made) in self._users.get(claim, {}).items()}

    def is_named(self, claim: ClaimKey, alive: Bools) -> bool:
        """Whether a pod on a node that exists names the claim."""
        rows = [row for row, (named, _) in self._users.get(claim, {}).items() if named and row < len(alive)]
        return bool(np.any(alive[rows])) if rows else False


def _disks(volume: PodVolume) -> list[tuple[str, ...]]:
    """What must not be shared. An RBD image is the same if one monitor is; iSCSI goes by the IQN alone."""
    disk = volume.disk
    if disk[:1] == ("rbd",):
        return [(*disk[:3], monitor) for monitor in dict.fromkeys(disk[3:])]
    return [disk] if disk[:1] in (("gce",), ("aws",), ("iscsi",)) else []
