"""The directory that a local cluster writes into: whose it is, and what of an earlier run is removed."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MARK = ".made-by-make-cluster"


@contextmanager
def own_directory(directory: Path) -> Iterator[None]:
    """Empty, and used by nobody else meanwhile. What an earlier run left is removed.

    Raises FileExistsError where it holds files of somebody else, BlockingIOError where another cluster runs in it.
    """
    mark = directory / _MARK
    if directory.exists() and not mark.exists() and any(directory.iterdir()):
        raise FileExistsError(
            f"{directory} holds files that are not of an earlier run: remove it, or name another one "
            "(make cluster CLUSTER='--directory DIR')"
        )
    directory.mkdir(parents=True, exist_ok=True)
    with mark.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"another cluster runs in {directory}: end it with Ctrl-C first") from None
        for entry in directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry != mark:
                entry.unlink()
        yield
