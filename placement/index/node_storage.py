"""What is known of the storage of nodes: CSINodes and attachments by row, and how many volumes of each CSI driver are
attached.

A volume that several pods or attachments of a node share counts once there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.storage_objects import CsiNodeInfo
from placement.index.csi_translation import MIGRATED, AttachedVolume

NO_LIMIT: Final = 2**62
"""Volumes that fit where a driver states no limit."""


class AttachedVolumes:
    """By row. What is subtracted must have been added before."""

    def __init__(self) -> None:
        self._uses: dict[AttachedVolume, dict[int, tuple[int, int]]] = {}  # by row: of pods, of attachments
        self._counts: dict[str, Ints] = {}

    def add(self, row: int, volume: AttachedVolume, *, pods: int = 0, attachments: int = 0) -> None:
        """Count more (or fewer) pods or attachments that use a volume on the node of a row."""
        rows = self._uses.setdefault(volume, {})
        of_pods, of_attachments = rows.get(row, (0, 0))
        was_there = bool(of_pods or of_attachments)
        after = (of_pods + pods, of_attachments + attachments)
        is_there = after != (0, 0)
        if is_there:
            rows[row] = after
        else:
            rows.pop(row, None)
            if not rows:
                del self._uses[volume]
        if was_there != is_there:
            self._count(volume[0], row, 1 if is_there else -1)

    def count(self, driver: str, n_rows: int) -> Ints:
        """(n_rows,) volumes of a driver."""
        counts = self._counts.get(driver)
        if counts is None:
            return np.zeros(n_rows, dtype=np.int64)
        if len(counts) < n_rows:
            counts = self._counts[driver] = _grown(counts, n_rows)
        return counts[:n_rows]

    def new(self, volumes: Iterable[AttachedVolume], n_rows: int) -> Ints:
        """(n_rows,) how many of these volumes no pod of the node uses yet."""
        found = np.zeros(n_rows, dtype=np.int64)
        for volume in volumes:
            found += 1
            rows = [row for row, (pods, _) in self._uses.get(volume, {}).items() if pods and row < n_rows]
            found[rows] -= 1
        return found

    def is_empty(self) -> bool:
        """Whether nothing is attached anywhere."""
        return not self._uses and not any(counts.any() for counts in self._counts.values())

    def _count(self, driver: str, row: int, change: int) -> None:
        counts = self._counts.get(driver)
        if counts is None or row >= len(counts):
            counts = self._counts[driver] = _grown(np.zeros(0, np.int64) if counts is None else counts, row + 1)
        counts[row] += change


def _grown(counts: Ints, n_rows: int) -> Ints:
    larger = np.zeros(max(n_rows, 2 * len(counts), 64), dtype=np.int64)
    larger[: len(counts)] = counts
    return larger


class NodeStorage:
    """Rows are those of the names placed last."""

    def __init__(self, attached: AttachedVolumes) -> None:
        """attached: where attachments are counted."""
        self._attached = attached
        self._names: list[str] = []
        self._row_of: dict[str, int] = {}
        self._csi_nodes: dict[str, CsiNodeInfo] = {}
        self._attachments: dict[str, dict[str, AttachedVolume]] = {}  # node -> attachment -> volume
        self._limits: dict[str, Ints] = {}
        self._migrated: dict[str, Ints] = {}
        self._installed: dict[str, Ints] = {}  # by driver; '' = there is a CSINode

    def place(self, names: Sequence[str]) -> None:
        """These are the names of the nodes by row; '' = a free row."""
        if self._names == names:  # the very same strings: 20 microseconds for 5,000
            return
        changed = [
            row
            for row, name in enumerate(names)
            if row >= len(self._names) or (self._names[row] is not name and self._names[row] != name)
        ]
        for row in (*changed, *range(len(names), len(self._names))):
            if row < len(self._names):
                self._set_row(row, self._names[row], -1)
                self._row_of.pop(self._names[row], None)
        self._names = list(names)
        for row in changed:
            self._row_of[names[row]] = row
            self._set_row(row, names[row], 1)
        self._row_of.pop("", None)

    def set_csi_node(self, name: str, csi_node: CsiNodeInfo | None) -> None:
        """The CSINode of a node came, changed or went."""
        row = self._row_of.get(name)
        before = self._csi_nodes.pop(name, None)
        if row is not None and before is not None:
            self._set_limits(row, before, -1)
        if csi_node is not None:
            self._csi_nodes[name] = csi_node
            if row is not None:
                self._set_limits(row, csi_node, 1)

    def set_attachment(self, node: str, name: str, volume: AttachedVolume | None) -> None:
        """What an attachment to a node counts as; None = nothing."""
        of_node = self._attachments.setdefault(node, {})
        before, row = of_node.pop(name, None), self._row_of.get(node)
        if before is not None and row is not None:
            self._attached.add(row, before, attachments=-1)
        if volume is not None:
            of_node[name] = volume
            if row is not None:
                self._attached.add(row, volume, attachments=1)
        if not of_node:
            del self._attachments[node]

    def limits(self, driver: str, n_rows: int) -> Ints:
        """(n_rows,) NO_LIMIT where the CSINode states none."""
        if driver not in self._limits:
            return np.full(n_rows, NO_LIMIT, dtype=np.int64)
        return _fitted(self._limits, driver, n_rows, NO_LIMIT)

    def migrated(self, plugin: str, n_rows: int) -> Bools:
        """(n_rows,) nodes whose CSINode says the plugin is migrated."""
        if plugin not in self._migrated:
            return np.zeros(n_rows, dtype=bool)
        return _fitted(self._migrated, plugin, n_rows, 0).astype(bool)

    def lacks(self, driver: str, n_rows: int, *, native: bool) -> Bools:
        """(n_rows,) nodes without the driver. native: those without a CSINode count, too."""
        installed, known = (_fitted(self._installed, key, n_rows, 0).astype(bool) for key in (driver, ""))
        return ~installed if native else known & ~installed

    def _set_row(self, row: int, name: str, sign: int) -> None:
        csi_node = self._csi_nodes.get(name)
        if csi_node is not None:
            self._set_limits(row, csi_node, sign)
        for volume in self._attachments.get(name, {}).values():
            self._attached.add(row, volume, attachments=sign)

    def _set_limits(self, row: int, csi_node: CsiNodeInfo, sign: int) -> None:
        for driver, limit in csi_node.limits.items():
            _fitted(self._limits, driver, row + 1, NO_LIMIT)[row] = limit if sign > 0 else NO_LIMIT
        for plugin in csi_node.migrated_plugins & MIGRATED.keys():
            _fitted(self._migrated, plugin, row + 1, 0)[row] = sign > 0
        for driver in ("", *csi_node.drivers):
            _fitted(self._installed, driver, row + 1, 0)[row] = sign > 0


def _fitted(table: dict[str, Ints], key: str, n_rows: int, fill: int) -> Ints:
    """(n_rows,) the column of a key, made or enlarged if need be."""
    column = table.get(key)
    if column is None or len(column) < n_rows:
        larger = np.full(max(n_rows, 64, 0 if column is None else 2 * len(column)), fill, dtype=np.int64)
        if column is not None:
            larger[: len(column)] = column
        column = table[key] = larger
    return column[:n_rows]
