"""Only one run at a time trains for a store.

In a local directory a run locks a file (flock, on NFS as far as the server locks): the kernel frees it however the run
ends. In an object store each run creates the next of numbered files, which fails for all but one, and renews it:

    <store>/train-lease-00000007.json    {"token", "holder", "expires"}

    free     no file, or the highest one has expired              -> the next number is created
    held     the highest one has not expired                      -> LeaseHeld
    lost     there is a higher one than ours, or ours is another's -> LeaseLost from `check`

Expiry goes by the clocks of the machines. A run that stood still for longer than its lease finds out in `check`, which
every run calls before it publishes. The highest file stays, so that no number comes twice.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import msgspec

from base.errors import ForecastError, StoreError
from base.object_store import FsspecStore, LocalStore, open_store
from base.periodic_task import PeriodicTask

logger = logging.getLogger(__name__)

LOCK_FILE: Final = ".train-lease.lock"
_LEASE, _END = "train-lease-", ".json"
_SETTLE_SECONDS: Final = 2.0
"""From creating a file to reading it back, for stores that let two runs create it. Longer than most requests take."""

Clock = Callable[[], datetime]
Check = Callable[[], None]


class LeaseHeld(ForecastError):
    """Another run holds the lease; the command line exits with 1."""

    def __init__(self, url: str, holder: str) -> None:
        super().__init__(f"another run is training for {url}: {holder}; wait for it")


class LeaseLost(ForecastError):
    """Another run has taken the lease over, or it could not be renewed in time: nothing may be published any more."""


def hold_lease(
    store_url: str,
    *,
    clock: Clock = lambda: datetime.now(UTC),
    seconds: float = 300.0,
    sleep: Callable[[float], None] = time.sleep,
) -> AbstractContextManager[Check]:
    """Be the only run that trains for a store, for as long as the block lasts.

    store_url : directory or fsspec URL; the files lie at its top, next to latest.json
    seconds   : for which a killed run keeps others out of an object store
    clock, sleep : the current time, aware, and what waits a number of seconds; for object stores
    Returns what raises LeaseLost if the lease is lost: to be called before publishing. Entering raises LeaseHeld, or
    StoreError if the store cannot be reached.
    """
    store, holder = open_store(store_url), f"{socket.gethostname()} pid {os.getpid()}"
    if isinstance(store, LocalStore):
        return _locked(store.root, store_url, holder)
    assert isinstance(store, FsspecStore)
    return _held(_Lease(store, store_url, holder, timedelta(seconds=seconds), clock), seconds, sleep)


@contextmanager
def _locked(root: Path, url: str, holder: str) -> Iterator[Check]:
    path = root / LOCK_FILE
    try:
        root.mkdir(parents=True, exist_ok=True)
        # A writer of the volume could put a link there, and the file behind it would be emptied.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except FileExistsError as error:
        raise StoreError(f"{root} is a file, it must be a directory") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error

    def check() -> None:
        try:
            is_there = os.path.samestat(os.fstat(descriptor), path.stat())
        except FileNotFoundError:
            is_there = False
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        if not is_there:
            raise LeaseLost(f"{path} was deleted, and another run may train for {url}: nothing is published, run again")

    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeaseHeld(url, os.pread(descriptor, 300, 0).decode(errors="replace")) from None
        except OSError as error:
            logger.warning("no lock: a second run is not kept out", extra={"file": str(path), "error": error.strerror})
        with suppress(OSError):  # of a full disk: the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder.encode(), 0)
        yield check
    finally:
        os.close(descriptor)


class _Record(msgspec.Struct, frozen=True):
    token: str
    holder: str
    expires: Annotated[datetime, msgspec.Meta(tz=True)]


class _Lease:
    """In an object store. Raises StoreError if that cannot be reached."""

    def __init__(self, store: FsspecStore, url: str, holder: str, length: timedelta, clock: Clock) -> None:
        self._store, self._url, self._length, self._clock = store, url, length, clock
        self._record = _Record(secrets.token_hex(8), holder, clock())
        self._number = 0

    def acquire(self, sleep: Callable[[float], None]) -> None:
        """Create the next file; raises LeaseHeld."""
        before, now = self._numbers(), self._clock()
        found = self._read(before[-1]) if before else None
        # Of a clock that was far ahead it would keep others out for as long; `check` tells a run that lives.
        if found is not None and now < found.expires <= now + 2 * self._length:
            until = found.expires.isoformat(timespec="seconds")
            raise LeaseHeld(self._url, f"{found.holder} renews its lease until {until}, or was killed")
        self._number = before[-1] + 1 if before else 1
        try:
            self._write(self._store.create)
        except (FileExistsError, StoreError):  # not all stores that speak S3 say why they refuse
            if self._read(self._number) is None:  # or know how: then the last of those that write it has it
                self._write(self._store.put)
        sleep(_SETTLE_SECONDS)  # it may be ours even if it was refused: a request that was sent again
        if not self._is_ours(self._read(self._number)):
            raise LeaseHeld(self._url, "it began in this very moment")
        for number in before:
            self._store.delete(_name(number))

    def check(self) -> None:
        """Renew the lease; raises LeaseLost if it is not ours any more or may not be."""
        try:
            found = self._read(self._number)
            is_lost = max(self._numbers(), default=0) > self._number or not (found is None or self._is_ours(found))
            if not is_lost:
                self._write(self._store.put)
        except StoreError as error:
            if self._clock() < self._record.expires:
                return  # no other run may have taken it yet
            raise LeaseLost(f"the lease at {self._url} could not be renewed in time ({error}): run again") from error
        if is_lost:
            raise LeaseLost(
                f"another run has taken over the lease at {self._url}, because this run stood still or its clock "
                "jumped: nothing is published, the other run goes on"
            )

    def release(self) -> None:
        """Let it expire now, if it is ours."""
        if self._number and self._is_ours(self._read(self._number)):
            self._length = timedelta()
            self._write(self._store.put)

    # Inside

    def _numbers(self) -> list[int]:
        names = [name.removeprefix(_LEASE).removesuffix(_END) for name in self._store.files("")]
        return sorted(int(name) for name in names if name.isdecimal() and len(name) == 8)

    def _read(self, number: int) -> _Record | None:
        """None = there is none, or what is there is none."""
        try:
            return msgspec.json.decode(self._store.get(_name(number)), type=_Record)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _is_ours(self, found: _Record | None) -> bool:
        return found is not None and found.token == self._record.token

    def _write(self, put: Callable[[str, bytes], None]) -> None:
        record = msgspec.structs.replace(self._record, expires=self._clock() + self._length)
        put(_name(self._number), msgspec.json.encode(record))
        self._record = record


@contextmanager
def _held(lease: _Lease, seconds: float, sleep: Callable[[float], None]) -> Iterator[Check]:
    keeping = PeriodicTask("train-lease", seconds / 3, lease.check)
    # A run that is stopped while it creates the file must release it again: so taking is inside, too.
    try:
        lease.acquire(sleep)
        keeping.start()
        yield lease.check
    finally:
        keeping.stop()
        try:
            lease.release()
        except StoreError as error:
            logger.warning("the lease could not be released, it expires", extra={"error": str(error)})


def _name(number: int) -> str:
    return f"{_LEASE}{number:08d}{_END}"
