"""Archives that are the same bytes whenever they are made of the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

EARLIEST: Final = 315532800
"""1980-01-01, as Unix time: no file in a zip, and so none in a wheel, can be older."""


class Entry(NamedTuple):
    """A file of an archive: its path in there."""

    name: str
    content: bytes
    mode: int = 0o644


def write_archive(path: Path, entries: Iterable[Entry], *, moment: int = EARLIEST) -> Path:
    """Write a .tar.gz of files that all get one time, in Unix seconds, and no owner. Returns its path."""
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for entry in entries:
            member = tarfile.TarInfo(entry.name)
            member.size, member.mode, member.mtime = len(entry.content), entry.mode, moment
            tar.addfile(member, io.BytesIO(entry.content))
    return path
