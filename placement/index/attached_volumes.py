"""Volumes attached to nodes: how many of each CSI driver, counted as pods and attachments come and go.

A volume that several pods or attachments of a node share counts once there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from base.arrays import Ints
from placement.index.csi_translation import AttachedVolume


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
