"""Two runs at once are excluded: a lease file that expires unless it is renewed.

    <store>/train-lease.json    {"token", "holder", "acquired", "renewed", "expires", "seconds"}

    free     no file, expired, or its process is known to be dead        -> taken
    held     not expired                                                 -> LeaseHeld
    ours     renewed by a thread every third of its length               -> deleted at the end
    lost     another run's token in the file                           -> LeaseLost from `check`

In a local directory reading and writing happen under flock(2), so exactly one of several runs gets in (on NFS as far as
the server locks). Object stores have no such lock: a run writes its token, waits a little and reads it back, and the
last writer wins. A writer that hangs between reading and writing for longer than that wait could run at the same time
as another; the earlier of them finds out in `check`, which every run calls before it publishes.

Expiry goes by the clocks of the machines, and clocks jump. A lease from so far in the future that no run can have
written it by our clock is watched instead: unless it is renewed meanwhile, it is free. A run that stood still for
longer than its lease finds out in `check`, too.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from base.errors import ForecastError, StoreError
from base.object_store import LocalStore, ObjectStore, open_store

logger = logging.getLogger(__name__)

LEASE_FILE = "train-lease.json"

_LOCK_FILE = ".train-lease.lock"
_SETTLE_SECONDS = 2.0
"""Object stores: from writing our token to reading it back. Longer than a request of another run usually takes."""

Clock = Callable[[], datetime]

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class LeaseHeld(ForecastError):
    """Another run holds the lease; the command line exits with 1."""

    def __init__(self, url: str, holder: str, expires: datetime) -> None:
        self.holder, self.expires = holder, expires
        super().__init__(
            f"another run is training for {url}: {holder} holds {LEASE_FILE} until "
            f"{expires.isoformat(timespec='seconds')} and renews it; wait for it, or for that time if it was killed"
        )


class LeaseLost(ForecastError):
    """Another run has taken the lease over, or it could not be renewed in time: nothing may be published any more."""


class _Record(msgspec.Struct, frozen=True):
    """Content of the file. process: host, pid namespace, pid and start time, as far as the system reports them."""

    token: str
    holder: str
    process: str
    acquired: _Moment
    renewed: _Moment
    expires: _Moment
    seconds: float

    def is_from_the_future(self, now: datetime) -> bool:
        return self.expires > now + 2 * timedelta(seconds=self.seconds)

    def renewed_at(self, now: datetime, *, acquired: datetime) -> _Record:
        return msgspec.structs.replace(
            self, acquired=acquired, renewed=now, expires=now + timedelta(seconds=self.seconds)
        )


class RunLease:
    """A lease that is held, once `acquire` returned. Made by `hold_lease`."""

    def __init__(self, url: str, store: ObjectStore, record: _Record, clock: Clock) -> None:
        self._url, self._store, self._record, self._clock = url, store, record, clock
        self._lock = threading.Lock()
        self._lost = ""
        self._wrote = False

    @property
    def holder(self) -> str:
        """Who we are: host, pid and a random token."""
        return self._record.holder

    def acquire(self, sleep: Callable[[float], None]) -> None:
        """Write our file if no other run holds the lease; raises LeaseHeld or StoreError. See `hold_lease`."""
        watched: _Record | None = None
        while True:
            with _exclusive(self._store):
                now, found = self._clock(), _read(self._store)
                abandoned = found is None or found == watched or now >= found.expires or _is_dead(found.process)
                if abandoned:
                    self._record = self._record.renewed_at(now, acquired=now)
                    self._wrote = True  # said before it is done: a signal may come in between
                    _write(self._store, self._record)
            if abandoned:
                break
            if found is None or watched is not None or not found.is_from_the_future(now):
                raise LeaseHeld(self._url, found.holder if found else "", found.expires if found else now)
            logger.warning(
                "the lease lies in the future: watching whether it is renewed", extra={"holder": found.holder}
            )
            watched = found
            sleep(found.seconds / 2)
        if not isinstance(self._store, LocalStore):
            sleep(_SETTLE_SECONDS)
            found = _read(self._store)
            if found is None or found.token != self._record.token:
                holder, expires = (found.holder, found.expires) if found else ("another run", self._clock())
                raise LeaseHeld(self._url, holder, expires)

    def check(self) -> None:
        """Renew the lease now; raises LeaseLost if it is not ours any more or may not be. Call before publishing."""
        try:
            self.renew()
        except StoreError as error:
            if self._clock() < self._record.expires:
                return  # no other run may have taken it yet
            raise LeaseLost(f"the lease at {self._url} could not be renewed in time ({error}): run again") from error

    def renew(self) -> None:
        """Write a later expiry; raises LeaseLost or StoreError."""
        with self._lock, _exclusive(self._store):
            found = None if self._lost else _read(self._store)
            if found is not None and found.token != self._record.token:
                self._lost = found.holder
            elif found is None and self._clock() >= self._record.expires:
                self._lost = "a run that is over"  # it deleted its file; a file of ours would still be there
            if self._lost:
                raise LeaseLost(
                    f"{self._lost} has taken over the lease at {self._url}, because this run stood still or its clock "
                    "jumped: nothing is published, the other run goes on"
                )
            # A file that was deleted by hand is written again.
            record = self._record.renewed_at(self._clock(), acquired=self._record.acquired)
            _write(self._store, record)
            self._record = record

    def release(self) -> None:
        """Delete the file if we wrote it and it is still ours."""
        if not self._wrote:
            return
        with self._lock, _exclusive(self._store):
            found = _read(self._store)
            if found is not None and found.token == self._record.token:
                self._store.delete(LEASE_FILE)


@contextmanager
def hold_lease(
    store_url: str,
    *,
    clock: Clock = lambda: datetime.now(UTC),
    seconds: float = 300.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[RunLease]:
    """Be the only run that trains for a store, for as long as the block lasts.

    store_url : directory or fsspec URL; the file lies at its top, next to latest.json
    clock     : the current time, aware
    seconds   : length of the lease, for which a killed run keeps others out, unless its process is seen to be gone
    sleep     : waits a number of seconds; only object stores and leases from the future need it
    Raises LeaseHeld, or StoreError if the store cannot be reached.
    """
    store = open_store(store_url)
    lease = RunLease(store_url, store, _new_record(clock(), seconds), clock)
    stop = threading.Event()
    thread = threading.Thread(target=_keep, args=(lease, stop, seconds / 3), name="train-lease", daemon=True)
    # A run that is stopped while it writes the file must remove it again: so taking is inside, too.
    try:
        lease.acquire(sleep)
        thread.start()
        yield lease
    finally:
        stop.set()
        if thread.ident is not None:
            thread.join(seconds)  # by then the lease has expired: a store that does not answer holds no run
        try:
            lease.release()
        except StoreError as error:
            logger.warning("the lease could not be deleted, it expires", extra={"url": store_url, "error": str(error)})


def _keep(lease: RunLease, stop: threading.Event, interval: float) -> None:
    """Renew until `stop` is set. The wait is monotonic: a jump of the clock neither hurries nor delays it."""
    while not stop.wait(interval):
        try:
            lease.renew()
        except LeaseLost as error:
            logger.error("the lease is lost", extra={"error": str(error)})
            return
        except StoreError as error:
            logger.warning("the lease could not be renewed, trying again", extra={"error": str(error)})


def _new_record(now: datetime, seconds: float) -> _Record:
    token = secrets.token_hex(8)
    holder = f"{socket.gethostname()} pid {os.getpid()} ({token})"
    return _Record(token, holder, _process(os.getpid()), now, now, now + timedelta(seconds=seconds), seconds)


def _write(store: ObjectStore, record: _Record) -> None:
    store.put(LEASE_FILE, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def _read(store: ObjectStore) -> _Record | None:
    """The record, or None if there is none or what is there is none: the file is written in one go, never half."""
    try:
        return msgspec.json.decode(store.get(LEASE_FILE), type=_Record)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        logger.warning("the lease file is not readable and is replaced", extra={"error": str(error)})
        return None


@contextmanager
def _exclusive(store: ObjectStore) -> Iterator[None]:
    """One process at a time, where the store is a local directory; nothing elsewhere. The kernel frees it on a kill."""
    if not isinstance(store, LocalStore):
        yield
        return
    try:
        store.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(store.root / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileExistsError as error:
        raise StoreError(f"{store.root} is a file, it must be a directory") from error
    except OSError as error:
        raise StoreError(f"{store.root / _LOCK_FILE}: {error.strerror}") from error
    try:
        with suppress(OSError):  # a file system without locks: as good as an object store
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _process(pid: int) -> str:
    """Return an id of a process that is unique across machines; "" if the system has none (not Linux)."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
        # Field 22 of proc(5)'s stat, counted behind the command's name, which may hold spaces and brackets.
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return ""
    return f"{boot} {namespace} {pid} {started}"


def _is_dead(process: str) -> bool:
    """Whether a process was one of this machine (and container) and is no more: a run killed and started again."""
    ours = _process(os.getpid()).split(" ")
    theirs = process.split(" ")
    if len(ours) != 4 or len(theirs) != 4 or ours[:2] != theirs[:2] or not theirs[2].isdecimal():
        return False
    return _process(int(theirs[2])) != process
