"""The closed cells of one UTC day in a file that only grows, so that a recorder that is killed loses no closed cell.

    <history>/recording/2026-11-30.cells     frames: length, CRC-32, MessagePack of one record

A frame is on the disk (fsync) before the next cell closes. What a killed writer left half written is cut off when the
file is opened again. 30 pods take 12 bytes each and cell: 100 KB a day and node, until the day is over.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from base.arrays import AnyFloats, Floats32, Ints
from base.errors import StoreError

DIRECTORY: Final = "recording"
_SUFFIX: Final = ".cells"
_HEAD: Final = struct.Struct("<II")
_LONGEST: Final = 1 << 26
"""Bytes of a frame. A cell of 6,000 pods takes 72 KB."""


class PodRecord(msgspec.Struct, frozen=True, tag="pod"):
    """A pod object that is bound to a node, by a number of this day; again when its requests change.

    owner, top : kind and name of its controller and of that one's; None = top is not known, empty = there is none
    requests   : CPU cores and memory bytes; None = it requests nothing of it
    """

    number: int
    namespace: str
    name: str
    uid: str
    node: str
    owner: tuple[str, str]
    top: tuple[str, str] | None
    requests: tuple[float | None, float | None]


class NodeRecord(msgspec.Struct, frozen=True, tag="node"):
    """What a node can do and what of it pods may request: CPU cores and memory bytes; again when that changes."""

    name: str
    capacity: tuple[float | None, float | None]
    allocatable: tuple[float | None, float | None]


class Cell(msgspec.Struct, frozen=True, tag="cell"):
    """Five minutes from `start` (unix seconds) on.

    pods       : little-endian int32 numbers of the pods that ran at its end
    pod_usage  : little-endian float32, (n_pods, 2) cores and bytes, NaN = not measured
    nodes      : names of the nodes that were measured
    node_usage : (n_nodes, 2) likewise
    """

    start: int
    pods: bytes
    pod_usage: bytes
    nodes: list[str]
    node_usage: bytes


Record = PodRecord | NodeRecord | Cell
_decoder = msgspec.msgpack.Decoder(Record)


def packed(usage: AnyFloats) -> bytes:
    """(n, 2) as a record has it."""
    return np.asarray(usage, dtype="<f4").tobytes()


def packed_numbers(numbers: Sequence[int]) -> bytes:
    """Numbers of pods as a record has them."""
    return np.asarray(numbers, dtype="<i4").tobytes()


def usage_of(content: bytes) -> Floats32:
    """The inverse of `packed`."""
    return np.frombuffer(content, dtype="<f4").reshape(-1, 2)


def numbers_of(content: bytes) -> Ints:
    """The inverse of `packed_numbers`."""
    return np.frombuffer(content, dtype="<i4").astype(np.int64)


class Journal:
    """Of one day. One process at a time: the lease of the history sees to that."""

    def __init__(self, history: Path, day: date) -> None:
        self.day, self.path = day, history / DIRECTORY / f"{day}{_SUFFIX}"
        self._length = 0

    def open(self) -> list[Record]:
        """All whole records; what comes after the last of them is cut off. Raises StoreError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            content = self.path.read_bytes() if self.path.exists() else b""
            records, self._length = _records(content)
            if self._length < len(content):
                os.truncate(self.path, self._length)
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error
        return records

    def append(self, records: Sequence[Record]) -> None:
        """All of these, on the disk when it returns. Raises StoreError, and then the file is as before."""
        content = b"".join(map(_frame, records))
        try:
            # Without a buffer, whose rest would be written when the file is closed after a failure.
            with self.path.open("ab", buffering=0) as stream:
                try:
                    rest = memoryview(content)
                    while rest:
                        rest = rest[stream.write(rest) :]
                    os.fsync(stream.fileno())
                except OSError:
                    os.truncate(self.path, self._length)
                    raise
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error
        self._length += len(content)

    def remove(self) -> None:
        """The day is in the history."""
        self.path.unlink(missing_ok=True)


def days_of_journals(history: Path) -> Iterator[date]:
    """The days that have a journal, oldest first."""
    for path in sorted((history / DIRECTORY).glob(f"*{_SUFFIX}")):
        try:
            yield date.fromisoformat(path.stem)
        except ValueError:
            continue


def is_recorded(history: str) -> bool:
    """Whether a recorder is filling this directory, or ended on a day that it has not closed: it is to be recent."""
    return "://" not in history and any(days_of_journals(Path(history)))


def _frame(record: Record) -> bytes:
    body = msgspec.msgpack.encode(record)
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def _records(content: bytes) -> tuple[list[Record], int]:
    """The whole records at the beginning, and how many bytes they take."""
    records: list[Record] = []
    at = 0
    while at + _HEAD.size <= len(content):
        length, checksum = _HEAD.unpack_from(content, at)
        body = content[at + _HEAD.size : at + _HEAD.size + length]
        if length > _LONGEST or len(body) < length or zlib.crc32(body) != checksum:
            break
        try:
            records.append(_decoder.decode(body))
        except msgspec.DecodeError:
            break
        at += _HEAD.size + length
    return records, at
