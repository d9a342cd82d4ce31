"""Where models and histories are kept: a local directory or any object store that fsspec knows, behind eight calls.

Names are relative, at most "<directory>/<file>". `put` is atomic: a reader sees the old bytes, the new ones or, if
there were none, nothing. Object stores promise that for one object; a local disk does after write, fsync and rename.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from base.announced_wait import FIRST_SECONDS, announced_wait
from base.errors import InputError, StoreError
from base.redaction import redacted

if TYPE_CHECKING:
    import fsspec

TEMPORARY: Final = ".forecast-scheduler.tmp-"
"""Start of the names of temporary files: those of other programs in the same directory are left alone."""
_ONE_REQUEST: Final = 5 * 2**30
"""Bytes of the largest object that S3 takes in one request."""
_FIRST_ANSWER_SECONDS: Final = 30.0
"""A store that accepts connections and never answers shows itself by then. s3fs alone repeats for six minutes."""


class ObjectStore(ABC):
    """Named bytes in flat directories."""

    @abstractmethod
    def get(self, name: str, at_most: int | None = None) -> bytes:
        """Content of a file; raises FileNotFoundError.

        at_most : one byte more is read, by which the reader sees that there are too many
        """

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Create or replace a file, all at once."""

    @abstractmethod
    def directories(self) -> list[str]:
        """Names of the directories at the top, sorted."""

    @abstractmethod
    def files(self, directory: str) -> list[str]:
        """Names of the files of a directory, sorted; empty if there is no such directory."""

    @abstractmethod
    def remove(self, directory: str, first: str) -> None:
        """Delete a directory, the file `first` before all others; nothing happens if it is not there."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete one file; nothing happens if it is not there."""

    @abstractmethod
    def remove_leftovers(self, older_than: float) -> None:
        """Delete temporary files of killed writers that were last touched before `older_than` (seconds since 1970)."""


def open_store(url: str) -> ObjectStore:
    """The store at a path, file:// URL or any other URL that fsspec has a driver for."""
    protocol, separator, rest = url.partition("://")
    if not separator or protocol == "file":
        return LocalStore(Path(rest if separator else url).expanduser())
    from fsspec.core import url_to_fs  # a local directory needs none of it

    try:
        filesystem, root = url_to_fs(url)
    except (ValueError, ImportError) as error:
        what = redacted(f"{url!r} cannot be opened ({error})")
        raise InputError(f"{what}: give a directory or a URL with an installed fsspec driver") from error
    return FsspecStore(filesystem, root.rstrip("/"))


class LocalStore(ObjectStore):
    """A directory. Every file is on the disk, not only in memory, before its name appears."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def root(self) -> Path:
        return self._root

    def get(self, name: str, at_most: int | None = None) -> bytes:
        with _translated(str(self._root / name)), open(self._root / name, "rb", opener=_plain_file) as stream:
            size = os.fstat(stream.fileno()).st_size
            return stream.read(-1 if at_most is None else min(size, at_most) + 1)

    def exists(self, name: str) -> bool:
        with _translated(str(self._root / name)):
            return (self._root / name).is_file()

    def put(self, name: str, content: bytes) -> None:
        with _translated(str(self._root / name), is_written=True):
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                # mkstemp is private to its user; trainer and scorer often run as different ones.
                os.chmod(temporary, 0o644)
                os.replace(temporary, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            _sync_directory(path.parent)
            if path.parent != self._root:
                _sync_directory(self._root)

    def directories(self) -> list[str]:
        with _translated(str(self._root)):
            if not self._root.is_dir():
                return []
            return sorted(entry.name for entry in self._root.iterdir() if entry.is_dir())

    def files(self, directory: str) -> list[str]:
        with _translated(str(self._root / directory)):
            if not (self._root / directory).is_dir():
                return []
            return sorted(entry.name for entry in (self._root / directory).iterdir() if entry.is_file())

    def remove(self, directory: str, first: str) -> None:
        with _translated(str(self._root / directory)):
            for name in sorted(self.files(directory), key=lambda name: name != first):
                (self._root / directory / name).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                (self._root / directory).rmdir()

    def delete(self, name: str) -> None:
        with _translated(str(self._root / name)):
            (self._root / name).unlink(missing_ok=True)

    def remove_leftovers(self, older_than: float) -> None:
        with _translated(str(self._root)):
            for pattern in (f"{TEMPORARY}*", f"*/{TEMPORARY}*"):
                for path in self._root.glob(pattern):
                    with suppress(OSError):  # gone already, or another user's: a file that stays does no harm
                        if path.stat().st_mtime < older_than:
                            path.unlink()


class FsspecStore(ObjectStore):
    """Any other fsspec filesystem. One put is one object, which object stores replace as a whole."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, root: str) -> None:
        self._fs: Any = filesystem
        self._root = root
        # s3fs sends objects of 100 MiB in parts. A writer killed between two leaves parts that no listing shows.
        protocols = filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,)
        self._in_one = {"chunksize": _ONE_REQUEST} if "s3" in protocols else {}
        self._answers = False

    @contextmanager
    def _asked(self, name: str, *, is_written: bool = False) -> Iterator[None]:
        """Around each call: raises StoreError, see _translated, and says what a long call waits for."""
        path = f"{self._root}/{name}"
        with _translated(path, is_written=is_written):
            if not self._answers:
                self._await_first_answer()
            with announced_wait(path):
                yield

    def _await_first_answer(self) -> None:
        """Raise if the store gives no answer to a small question: StoreError, or what the driver gave up with."""
        failed: list[Exception] = []

        def ask() -> None:
            started = time.monotonic()
            try:
                self._fs.info(self._root)
            except Exception as error:
                # An error that comes soon is an answer: the place may be empty, or its list not for us.
                if time.monotonic() - started >= FIRST_SECONDS:
                    failed.append(error)

        asking = threading.Thread(target=ask, name="first-answer", daemon=True)
        with announced_wait(self._fs.unstrip_protocol(self._root), _FIRST_ANSWER_SECONDS):
            asking.start()
            asking.join(_FIRST_ANSWER_SECONDS)
        if asking.is_alive():
            raise StoreError(f"{self._root}: no answer within {_FIRST_ANSWER_SECONDS:g} s")
        if failed:
            raise failed[0]
        self._answers = True

    def get(self, name: str, at_most: int | None = None) -> bytes:
        with self._asked(name):
            path = f"{self._root}/{name}"
            part = {} if at_most is None else {"start": 0, "end": at_most + 1}
            try:
                content: bytes = self._fs.cat_file(path, **part)
            except FileNotFoundError:
                raise
            except Exception:
                if not part or not self._is_empty(path):  # of an empty object, object stores have no part
                    raise
                content = b""
            return content

    def _is_empty(self, path: str) -> bool:
        with suppress(Exception):
            return bool(self._fs.size(path) == 0)
        return False

    def exists(self, name: str) -> bool:
        with self._asked(name):
            self._fs.invalidate_cache()
            try:
                # Not `isfile`: it says no where the store gives no answer.
                return bool(self._fs.info(f"{self._root}/{name}")["type"] == "file")
            except FileNotFoundError:
                return False

    def put(self, name: str, content: bytes) -> None:
        with self._asked(name, is_written=True):
            # Nothing to do on object stores; stores with real directories (SFTP, HDFS) need them.
            self._fs.makedirs(f"{self._root}/{name}".rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(f"{self._root}/{name}", content, **self._in_one)
            self._fs.invalidate_cache()

    def create(self, name: str, content: bytes) -> None:
        """Write a file that is not there; raises FileExistsError. S3, Cloud Storage and Blob Storage let one of several
        writers in; other stores may let in more.
        """
        with self._asked(name, is_written=True):
            self._fs.makedirs(f"{self._root}/{name}".rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(f"{self._root}/{name}", content, mode="create")
            self._fs.invalidate_cache()

    def directories(self) -> list[str]:
        return self._list("", "directory")

    def files(self, directory: str) -> list[str]:
        return self._list(directory, "file")

    def _list(self, directory: str, kind: str) -> list[str]:
        with self._asked(directory):
            # Listings are cached per process, and another process may have published.
            self._fs.invalidate_cache()
            try:
                entries = self._fs.ls(f"{self._root}/{directory}".rstrip("/"), detail=True)
            except FileNotFoundError:
                return []
            return sorted(str(e["name"]).rstrip("/").rpartition("/")[2] for e in entries if e["type"] == kind)

    def remove(self, directory: str, first: str) -> None:
        with self._asked(directory):
            for name in sorted(self.files(directory), key=lambda name: name != first):
                with suppress(FileNotFoundError):
                    self._fs.rm_file(f"{self._root}/{directory}/{name}")
            with suppress(OSError, NotImplementedError):
                self._fs.rmdir(f"{self._root}/{directory}")  # object stores have no directories to remove
            self._fs.invalidate_cache()

    def delete(self, name: str) -> None:
        with self._asked(name):
            with suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._root}/{name}")
            self._fs.invalidate_cache()

    def remove_leftovers(self, older_than: float) -> None:
        """Nothing: an object that was not written completely does not exist."""


@contextmanager
def _translated(name: str, *, is_written: bool = False) -> Iterator[None]:
    """A missing file stays FileNotFoundError, unless it is written, and one that is there FileExistsError; all else a
    store can raise becomes StoreError.
    """
    try:
        yield
    except (StoreError, FileExistsError):
        raise
    except Exception as error:  # drivers raise errors of their own client libraries
        if isinstance(error, FileNotFoundError) and not is_written:
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
        raise StoreError(redacted(f"{name}: {reason or type(error).__name__}")) from error


def _plain_file(path: str, flags: int) -> int:
    """Open files only. A writer of the volume could put a pipe there, and its reader would wait for ever."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a file: remove it")
    return descriptor


def _sync_directory(path: Path) -> None:
    """Make a rename or a new name durable: without it a power failure may forget the directory's entry."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
