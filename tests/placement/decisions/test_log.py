"""The decision log on real files: rotated, moved away, on full disks, and read back."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from base.errors import InputError
from placement.decisions.decision_log import STDOUT, DecisionLog, LogFigures, RotatingFile, open_decision_log
from placement.decisions.decision_log_reader import read_decisions
from tests.placement.decisions.made_up import AT, advice, binding


def write(log: DecisionLog, *uids: str) -> None:
    log.start()
    for number, uid in enumerate(uids):
        log.take(binding(advice({"n1": 2, "n2": 1}, uid=uid, pod=f"shop/{uid}"), "n2", at=AT + number))
    log.stop()


def test_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    write(open_decision_log(STDOUT), "a")
    assert msgspec.json.decode(capfd.readouterr().out)["uid"] == "a"


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "log", tmp_path):
        with pytest.raises(InputError, match="cannot be written"):
            open_decision_log(path)


@pytest.mark.parametrize(
    ("max_bytes", "keep", "files"),
    [
        (25, 2, {"log": "89", "log.1": "67", "log.2": "45"}),
        (25, 0, {"log": "89"}),
        (5, 1, {"log": "9", "log.1": "8"}),
        (0, 2, {"log": "0123456789"}),
    ],
)
def test_rotation_by_size_keeps_so_many(tmp_path: Path, max_bytes: int, keep: int, files: dict[str, str]) -> None:
    file = RotatingFile(tmp_path / "log", max_bytes=max_bytes, keep=keep)
    for number in range(10):
        file.write(b"line: %d....\n" % number)  # 12 bytes
    file.close()
    found = {path.name: "".join(line[6] for line in path.read_text().splitlines()) for path in tmp_path.iterdir()}
    assert found == files


@pytest.mark.parametrize(
    "rotate",
    [lambda path: os.replace(path, f"{path}.old"), os.unlink, lambda path: os.truncate(path, 0)],
    ids=["moved", "deleted", "copytruncate"],
)
def test_a_log_that_is_taken_away_goes_on_under_its_name(tmp_path: Path, rotate: Callable[[Path], None]) -> None:
    path = tmp_path / "log"
    file = RotatingFile(path)
    file.write(b"before\n")
    rotate(path)
    file.write(b"after\n")
    file.close()
    assert path.read_bytes() == b"after\n"
    assert not (tmp_path / "log.old").exists() or (tmp_path / "log.old").read_bytes() == b"before\n"


def test_a_line_cut_off_by_a_kill_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(open_decision_log(path), "a")
    with path.open("ab") as file:
        file.write(b'{"time": "2026')
    write(open_decision_log(path), "b")
    read = read_decisions([path])
    assert [one.uid for one in read.decisions] == ["a", "b"]
    assert read.unreadable == 1


def test_a_full_disk_is_counted_said_once_and_over_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    full = RotatingFile(Path("/dev/full"))  # every write fails with ENOSPC
    written: list[bytes] = []
    is_full = True

    def append(lines: bytes) -> None:
        if is_full:
            full.write(lines)
        written.append(lines)

    log = DecisionLog(append, name="test", close=full.close)
    for uid in "abc":
        log._append([binding(advice({"n1": 1}, uid=uid), "n1")])
    assert log.figures == LogFigures(written=0, dropped=0, failed=3)
    assert caplog.text.count("decisions are not logged") == 1
    is_full = False
    write(log, "d")
    assert log.figures == LogFigures(written=1, dropped=0, failed=3)
    assert len(written) == 1


def test_a_disk_that_hangs_holds_nobody_up_and_memory_stays_bounded() -> None:
    free, at_work = threading.Event(), threading.Event()

    def hang(lines: bytes) -> None:
        at_work.set()
        assert free.wait(30)
        lengths.append(lines.count(b"\n"))

    lengths: list[int] = []
    log = DecisionLog(hang, name="test")
    log.start()
    points = {f"n{number}": number for number in range(1_000)}
    given = advice(points)
    log.take(binding(given, "n1"))
    assert at_work.wait(10)
    for _ in range(2_500):
        log.take(binding(given, "n1"))
    assert log._outbox.weight <= 500_000
    assert log.figures.dropped == 500
    free.set()
    log.stop(timeout=30)
    assert log.figures == LogFigures(written=2_001, dropped=500, failed=0)
    assert sum(lengths) == 2_001


def test_what_cannot_be_written_as_json_is_lost_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = open_decision_log(path)
    log.start()
    log.take(binding(advice({"n1": 1}, pod="shop/\ud800"), "n1"))
    log.take(binding(advice({"n1": 1}, uid="sound"), "n1"))
    log.stop()
    assert log.figures == LogFigures(written=1, dropped=0, failed=1)
    assert [one.uid for one in read_decisions([path]).decisions] == ["sound"]


def test_rotated_compressed_and_overlapping_files_are_read_as_one(tmp_path: Path) -> None:
    path, older = tmp_path / "log", tmp_path / "log.1.gz"
    write(open_decision_log(path), "a", "b")
    older.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    write(open_decision_log(path), "b", "c")
    with path.open("ab") as file:
        file.write(b"\n[]\n12\nnonsense\n\xff\xfe\n" + b"[" * 3_000 + b"\n")
    read = read_decisions([path, older])
    assert sorted(one.uid for one in read.decisions) == ["a", "b", "c"]
    assert (read.unreadable, read.repeated) == (5, 1)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{}\n", b"\x1f\x8bno gzip at all"])
def test_a_log_without_decisions_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(InputError, match="log"):
        read_decisions([path])
    with pytest.raises(InputError, match="cannot be read"):
        read_decisions([tmp_path / "missing"])
