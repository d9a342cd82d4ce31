"""Of several runs at once one gets in, and none is kept out for ever."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import trainer.run_lease
from base.object_store import LocalStore, open_store
from testing.settable_clock import SettableClock
from trainer.run_lease import LEASE_FILE, LeaseHeld, LeaseLost, hold_lease

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 5, 4, 2, tzinfo=UTC)


def start_run(*urls: str, start: float = 0.0, hold: float = 30.0, seconds: float = 900.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.trainer.lease_process", str(start), str(hold), str(seconds), *urls]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def answers_per_lease(n_runs: int, urls: list[str], *, hold: float) -> list[list[str]]:
    """What runs that start at the same moment are told, sorted, for each of several leases."""
    start = time.time() + 2  # all have imported what they need by then
    runs = [start_run(*urls, start=start, hold=hold) for _ in range(n_runs)]
    told = [run.communicate(timeout=120)[0].split() for run in runs]
    return [sorted(answers) for answers in zip(*told, strict=True)]


def first_line(run: subprocess.Popen[str]) -> str:
    assert run.stdout is not None
    return run.stdout.readline().strip()


def end(*runs: subprocess.Popen[str]) -> None:
    for run in runs:
        run.kill()
        run.communicate()


def test_of_processes_that_start_at_once_exactly_one_gets_in(tmp_path: Path) -> None:
    urls = [str(tmp_path / str(attempt)) for attempt in range(4)]
    assert answers_per_lease(4, urls, hold=0.5) == [["held", "held", "held", "in"]] * 4
    assert not list(tmp_path.glob(f"*/{LEASE_FILE}"))


def test_an_expired_lease_is_taken_over_by_exactly_one(tmp_path: Path) -> None:
    urls = [str(tmp_path / str(attempt)) for attempt in range(4)]
    for url in urls:
        with hold_lease(url, clock=lambda: NOW - timedelta(days=365)):
            left = (Path(url) / LEASE_FILE).read_bytes()
        (Path(url) / LEASE_FILE).write_bytes(left)
    assert answers_per_lease(3, urls, hold=0.5) == [["held", "held", "in"]] * 4


def test_without_locks_the_last_writer_wins_and_the_others_are_told(tmp_path: Path) -> None:
    """All may have written in time, but who was overwritten never ends up thinking that it holds the lease."""
    url = f"local://{tmp_path}"  # fsspec's driver: what object stores get
    (answers,) = answers_per_lease(3, [url], hold=1.0)
    assert answers.count("in") == 1 and "lost" not in answers


def test_a_killed_run_on_this_machine_does_not_keep_the_next_out(tmp_path: Path) -> None:
    killed = start_run(str(tmp_path))
    assert first_line(killed) == "in"
    with pytest.raises(LeaseHeld, match=f"pid {killed.pid} .* until 20"), hold_lease(str(tmp_path)):
        pass
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    with hold_lease(str(tmp_path)) as lease:
        lease.check()


def test_a_living_run_renews(tmp_path: Path) -> None:
    running = start_run(str(tmp_path), seconds=1.5)
    try:
        assert first_line(running) == "in"
        for _ in range(4):
            time.sleep(1)
            with pytest.raises(LeaseHeld), hold_lease(str(tmp_path)):
                pass
    finally:
        end(running)


def test_a_run_that_stood_still_too_long_may_not_publish(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    with hold_lease(str(tmp_path), clock=clock) as ours:
        clock.now += timedelta(seconds=901)
        with hold_lease(str(tmp_path), clock=clock) as theirs:
            with pytest.raises(LeaseLost, match=r"has taken over .* nothing is published"):
                ours.check()
            theirs.check()
        with pytest.raises(LeaseLost):  # also once the other is done: it has published meanwhile
            ours.check()


def test_a_run_that_slept_through_the_whole_run_of_another_may_not_publish(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    with hold_lease(str(tmp_path), clock=clock) as ours:
        clock.now += timedelta(seconds=901)
        with hold_lease(str(tmp_path), clock=clock):
            pass
        with pytest.raises(LeaseLost, match="a run that is over"):
            ours.check()


def test_the_end_of_a_run_that_lost_its_lease_leaves_the_other_alone(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    with hold_lease(str(tmp_path), clock=clock):
        clock.now += timedelta(seconds=901)
        other = hold_lease(str(tmp_path), clock=clock)
        lease = other.__enter__()
    lease.check()
    assert lease.holder in (tmp_path / LEASE_FILE).read_text()
    other.__exit__(None, None, None)
    assert not (tmp_path / LEASE_FILE).exists()


@pytest.mark.parametrize("jump", [timedelta(days=-3), timedelta(minutes=-5), timedelta(minutes=10)])
def test_a_clock_that_jumps_does_not_end_the_lease_of_a_run_that_renews(tmp_path: Path, jump: timedelta) -> None:
    clock = SettableClock(NOW)
    with hold_lease(str(tmp_path), clock=clock) as ours:
        clock.now += jump

        def wait(seconds: float) -> None:
            ours.renew()  # as the thread does within a third of the lease

        with pytest.raises(LeaseHeld), hold_lease(str(tmp_path), clock=clock, sleep=wait):
            pass
        ours.check()


def test_a_lease_from_the_future_that_nobody_renews_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer.run_lease, "_process", lambda pid: "")
    with hold_lease(str(tmp_path), clock=lambda: NOW + timedelta(days=3650)):
        left = (tmp_path / LEASE_FILE).read_bytes()
    (tmp_path / LEASE_FILE).write_bytes(left)
    slept: list[float] = []
    with hold_lease(str(tmp_path), clock=lambda: NOW, sleep=slept.append) as lease:
        lease.check()
    assert slept == [450.0]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"token": 1}', b"\xff\xfe", b'"text"'])
def test_a_damaged_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LEASE_FILE).write_bytes(content)
    with hold_lease(str(tmp_path)) as lease:
        assert json.loads((tmp_path / LEASE_FILE).read_text())["holder"] == lease.holder


def test_the_file_is_deleted_and_the_thread_ends_also_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold_lease(str(tmp_path)):
        raise ZeroDivisionError
    assert not (tmp_path / LEASE_FILE).exists()
    assert "train-lease" not in {thread.name for thread in threading.enumerate()}


def test_a_store_that_cannot_be_written_for_a_while_is_forgiven_until_expiry(tmp_path: Path) -> None:
    clock = SettableClock(NOW)
    with hold_lease(str(tmp_path), clock=clock) as lease:
        (tmp_path / LEASE_FILE).unlink()
        (tmp_path / LEASE_FILE).mkdir()  # reading and writing it fail
        lease.check()
        clock.now += timedelta(seconds=901)
        with pytest.raises(LeaseLost, match="could not be renewed in time"):
            lease.check()


def test_in_an_object_store_somebody_who_wrote_after_us_is_noticed() -> None:
    url = "memory://lease-test"

    def overwritten(seconds: float) -> None:
        store = open_store(url)
        document = json.loads(store.get(LEASE_FILE))
        store.put(LEASE_FILE, json.dumps(document | {"token": "other", "holder": "other host"}).encode())

    def undisturbed(seconds: float) -> None:
        pass

    def enter(sleep: Callable[[float], None]) -> None:
        with hold_lease(url, sleep=sleep) as lease:
            lease.check()

    with pytest.raises(LeaseHeld, match="other host"):
        enter(overwritten)
    open_store(url).delete(LEASE_FILE)
    enter(undisturbed)
    with pytest.raises(FileNotFoundError):
        open_store(url).get(LEASE_FILE)


def test_a_run_told_to_stop_the_moment_its_file_is_written_takes_it_away_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStore.put

    def put_and_be_interrupted(self: LocalStore, path: str, content: bytes) -> None:
        put(self, path, content)
        assert (tmp_path / LEASE_FILE).exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalStore, "put", put_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt), hold_lease(str(tmp_path)):
        pass
    assert not (tmp_path / LEASE_FILE).exists()
