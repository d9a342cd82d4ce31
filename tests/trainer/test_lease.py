"""Of several runs at once one gets in, and none is kept out for ever."""

from __future__ import annotations

import errno
import fcntl
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from base.errors import StoreError
from base.object_store import FsspecStore, open_store
from base.periodic_task import PeriodicTask
from testing.servers.object_store import ObjectStoreServer
from testing.settable_clock import SettableClock
from trainer.run_lease import LOCK_FILE, LeaseHeld, LeaseLost, hold_lease

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 5, 4, 2, tzinfo=UTC)


def start_run(*urls: str, start: float = 0.0, hold: float = 30.0, seconds: float = 900.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.trainer.lease_process", str(start), str(hold), str(seconds), *urls]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def answers_per_lease(n_runs: int, urls: list[str], *, hold: float) -> list[list[str]]:
    """What runs that start at the same moment print, sorted, for each of several leases."""
    start = time.time() + 2  # all have imported what they need by then
    runs = [start_run(*urls, start=start, hold=hold) for _ in range(n_runs)]
    printed = [run.communicate(timeout=120)[0].split() for run in runs]
    return [sorted(answers) for answers in zip(*printed, strict=True)]


def first_line(run: subprocess.Popen[str]) -> str:
    assert run.stdout is not None
    return run.stdout.readline().strip()


def end(*runs: subprocess.Popen[str]) -> None:
    for run in runs:
        run.kill()
        run.communicate()


NO_WAIT: Callable[[float], None] = lambda seconds: None  # noqa: E731


@pytest.fixture
def bucket() -> Iterator[str]:
    """URL of an object store that lets one of several creators of a file in, as S3 does."""
    with ObjectStoreServer() as running:
        yield running.url


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread renews: a test does, when it has set the clock."""
    monkeypatch.setattr(PeriodicTask, "start", lambda self: None)


# In a directory


def test_of_processes_that_start_at_once_exactly_one_gets_in(tmp_path: Path) -> None:
    urls = [str(tmp_path / str(attempt)) for attempt in range(4)]
    assert answers_per_lease(4, urls, hold=0.5) == [["held", "held", "held", "in"]] * 4


def test_a_living_run_keeps_others_out_and_a_killed_one_does_not(tmp_path: Path) -> None:
    running = start_run(str(tmp_path))
    assert first_line(running) == "in"
    for act in (signal.SIGSTOP, signal.SIGCONT):  # also while it stands still
        running.send_signal(act)
        with pytest.raises(LeaseHeld, match=f"another run .* pid {running.pid};"), hold_lease(str(tmp_path)):
            pass
    running.send_signal(signal.SIGKILL)
    running.communicate()
    with hold_lease(str(tmp_path)) as check:
        check()


def test_a_run_whose_lock_was_deleted_may_not_publish(tmp_path: Path) -> None:
    with hold_lease(str(tmp_path)) as check:
        (tmp_path / LOCK_FILE).unlink()
        with hold_lease(str(tmp_path)) as other:
            other()
            with pytest.raises(LeaseLost, match="was deleted"):
                check()


def test_a_volume_that_is_away_before_publishing_is_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(path: Path) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    with hold_lease(str(tmp_path)) as check, monkeypatch.context() as broken:
        broken.setattr(Path, "stat", away)
        with pytest.raises(StoreError, match="Stale file handle"):
            check()


def test_the_lock_ends_with_the_block_also_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold_lease(str(tmp_path)):
        raise ZeroDivisionError
    with hold_lease(str(tmp_path)) as check:
        check()


def test_a_file_instead_of_a_directory_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "models").touch()
    with pytest.raises(StoreError, match="must be a directory"), hold_lease(str(tmp_path / "models")):
        pass


def test_a_file_system_without_locks_is_said_and_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with hold_lease(str(tmp_path)) as check:
        check()
    assert "a second run is not kept out" in caplog.text


def test_a_link_in_place_of_the_lock_is_refused_and_what_it_names_stays(tmp_path: Path) -> None:
    (tmp_path / "latest.json").write_text("precious")
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "latest.json")
    with pytest.raises(StoreError, match="symbolic links"), hold_lease(str(tmp_path)):
        pass
    assert (tmp_path / "latest.json").read_text() == "precious"


def test_a_full_disk_does_not_end_the_run_before_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, content: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("trainer.run_lease.os.pwrite", full)
    with hold_lease(str(tmp_path)) as check:
        check()
        with pytest.raises(LeaseHeld), hold_lease(str(tmp_path)):
            pass


# In an object store


def names(url: str) -> list[str]:
    return [name for name in open_store(url).files("") if name.startswith("train-lease")]


def test_of_processes_that_create_a_file_at_once_exactly_one_gets_in(bucket: str) -> None:
    (answers,) = answers_per_lease(4, [bucket], hold=3.0)
    assert answers == ["held", "held", "held", "in"]
    assert names(bucket) == ["train-lease-00000001.json"]


def test_where_a_file_is_created_twice_the_last_writer_alone_gets_in(tmp_path: Path) -> None:
    """All may have written in time, but who was overwritten never ends up thinking that it holds the lease."""
    url = f"local://{tmp_path}"  # fsspec's driver looks whether a file is there, and then writes it
    (answers,) = answers_per_lease(3, [url], hold=1.0)
    assert answers.count("in") == 1 and "lost" not in answers


@pytest.mark.usefixtures("by_hand")
def test_a_store_that_cannot_create_only_takes_the_last_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some that speak S3 answer 501 to a request with a condition."""
    url = "memory://lease-unconditional"

    def refuse(self: FsspecStore, name: str, content: bytes) -> None:
        raise StoreError("A header you provided implies functionality that is not implemented")

    monkeypatch.setattr(FsspecStore, "create", refuse)
    with hold_lease(url, sleep=NO_WAIT) as ours:
        ours()
        with pytest.raises(LeaseHeld), hold_lease(url, sleep=NO_WAIT):
            pass
        record = open_store(url).get("train-lease-00000001.json")
        open_store(url).put("train-lease-00000001.json", record.replace(b'"token":"', b'"token":"other-'))
        with pytest.raises(LeaseLost):  # one that wrote it at the same time
            ours()
    with pytest.raises(LeaseHeld), hold_lease(url, sleep=NO_WAIT):  # it is the other's still
        pass


@pytest.mark.usefixtures("by_hand")
def test_a_store_that_is_away_when_the_lease_is_taken_is_a_store_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(self: FsspecStore, name: str, content: bytes) -> None:
        raise StoreError("no answer")

    monkeypatch.setattr(FsspecStore, "create", gone)
    monkeypatch.setattr(FsspecStore, "put", gone)
    with pytest.raises(StoreError, match="no answer"), hold_lease("memory://lease-away", sleep=NO_WAIT):
        pass


def test_a_killed_run_keeps_others_out_until_its_lease_ends_and_a_living_one_renews(bucket: str) -> None:
    running = start_run(bucket, seconds=3.0)
    try:
        assert first_line(running) == "in"
        for _ in range(3):
            time.sleep(1.5)
            with pytest.raises(LeaseHeld, match=f"pid {running.pid} renews"), hold_lease(bucket, sleep=NO_WAIT):
                pass
    finally:
        end(running)
    with pytest.raises(LeaseHeld, match="or was killed"), hold_lease(bucket, sleep=NO_WAIT):
        pass
    time.sleep(3.1)
    with hold_lease(bucket, sleep=NO_WAIT) as check:
        check()
    assert names(bucket) == ["train-lease-00000002.json"]


@pytest.mark.usefixtures("by_hand")
def test_a_run_that_stood_still_too_long_may_not_publish(bucket: str) -> None:
    clock = SettableClock(NOW)
    with hold_lease(bucket, clock=clock, sleep=NO_WAIT) as ours:
        clock.now += timedelta(seconds=901)
        with hold_lease(bucket, clock=clock, sleep=NO_WAIT) as theirs:
            with pytest.raises(LeaseLost, match=r"has taken over .* nothing is published"):
                ours()
            theirs()
        with pytest.raises(LeaseLost):  # also once the other is done: it has published meanwhile
            ours()


@pytest.mark.usefixtures("by_hand")
def test_the_end_of_a_run_that_lost_its_lease_leaves_the_other_alone(bucket: str) -> None:
    clock = SettableClock(NOW)
    with hold_lease(bucket, clock=clock, sleep=NO_WAIT):
        clock.now += timedelta(seconds=901)
        other = hold_lease(bucket, clock=clock, sleep=NO_WAIT)
        check = other.__enter__()
    check()
    with pytest.raises(LeaseHeld), hold_lease(bucket, clock=clock, sleep=NO_WAIT):
        pass
    other.__exit__(None, None, None)
    with hold_lease(bucket, clock=clock, sleep=NO_WAIT):
        pass


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("jump", [timedelta(days=-3), timedelta(minutes=-5), timedelta(minutes=10)])
def test_a_clock_that_jumps_does_not_end_the_lease_of_a_run_that_renews(bucket: str, jump: timedelta) -> None:
    clock = SettableClock(NOW)
    with hold_lease(bucket, clock=clock, sleep=NO_WAIT) as ours:
        clock.now += jump
        ours()  # as the thread does within a third of the lease
        with pytest.raises(LeaseHeld), hold_lease(bucket, clock=clock, sleep=NO_WAIT):
            pass
        ours()


@pytest.mark.usefixtures("by_hand")
def test_a_lease_from_the_far_future_keeps_no_run_out(bucket: str) -> None:
    ahead = hold_lease(bucket, clock=lambda: NOW + timedelta(days=3650), sleep=NO_WAIT)
    ours = ahead.__enter__()
    with hold_lease(bucket, clock=lambda: NOW, sleep=NO_WAIT) as check:
        check()
        with pytest.raises(LeaseLost):
            ours()
    ahead.__exit__(None, None, None)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"token": 1}', b"\xff\xfe", b'"text"'])
def test_a_damaged_file_is_replaced(content: bytes) -> None:
    url = "memory://lease-damaged"
    open_store(url).put("train-lease-00000041.json", content)
    with hold_lease(url, sleep=NO_WAIT) as check:
        check()
    assert names(url) == ["train-lease-00000042.json"]
    open_store(url).delete("train-lease-00000042.json")


@pytest.mark.usefixtures("by_hand")
def test_a_store_that_gives_no_answer_for_a_while_is_forgiven_until_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SettableClock(NOW)

    def gone(self: FsspecStore, directory: str) -> list[str]:
        raise StoreError("no answer")

    with hold_lease("memory://lease-gone", clock=clock, sleep=NO_WAIT) as check, monkeypatch.context() as broken:
        broken.setattr(FsspecStore, "files", gone)
        check()
        clock.now += timedelta(seconds=901)
        with pytest.raises(LeaseLost, match="could not be renewed in time"):
            check()


def test_a_run_that_is_stopped_the_moment_its_file_is_created_releases_it(monkeypatch: pytest.MonkeyPatch) -> None:
    create, url = FsspecStore.create, "memory://lease-stopped"

    def create_and_be_interrupted(self: FsspecStore, name: str, content: bytes) -> None:
        create(self, name, content)
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(FsspecStore, "create", create_and_be_interrupted)
        with pytest.raises(KeyboardInterrupt), hold_lease(url, sleep=NO_WAIT):
            pass
    with hold_lease(url, sleep=NO_WAIT) as check:
        check()
    assert "every-train-lease" not in {thread.name for thread in threading.enumerate()}
