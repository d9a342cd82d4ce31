"""Cells on the disk, whatever happens to the process that writes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from base.errors import StoreError
from testing.waiting import eventually
from trainer.sampling.journal import (
    Cell,
    Journal,
    NodeRecord,
    PodRecord,
    days_of_journals,
    numbers_of,
    packed,
    packed_numbers,
    usage_of,
)

_DAY = date(2026, 11, 30)
_POD = PodRecord(0, "shop", "cart-0", "u0", "n1", ("StatefulSet", "cart"), None, (0.5, None))
_NODE = NodeRecord("n1", (4.0, 16e9), (3.8, 15e9))


def _cell(start: int) -> Cell:
    return Cell(start, packed_numbers([0]), packed(np.array([[0.25, np.nan]])), ["n1"], packed(np.array([[1.0, 2e9]])))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path, _DAY)
    assert journal.open() == []
    journal.append([_NODE, _POD, _cell(0)])
    journal.append([_cell(300)])
    assert Journal(tmp_path, _DAY).open() == [_NODE, _POD, _cell(0), _cell(300)]
    assert list(days_of_journals(tmp_path)) == [_DAY]
    assert numbers_of(_cell(0).pods).tolist() == [0]
    assert np.array_equal(usage_of(_cell(0).pod_usage), np.array([[0.25, np.nan]], dtype=np.float32), equal_nan=True)
    journal.remove()
    assert list(days_of_journals(tmp_path)) == []


@pytest.mark.parametrize("torn", [b"\x05", b"\x05\0\0\0\1\2\3\4abc", b"\xff" * 40])
def test_what_a_killed_writer_left_half_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    journal = Journal(tmp_path, _DAY)
    journal.open()
    journal.append([_POD, _cell(0)])
    with journal.path.open("ab") as stream:
        stream.write(torn)
    again = Journal(tmp_path, _DAY)
    assert again.open() == [_POD, _cell(0)]
    again.append([_cell(300)])
    assert Journal(tmp_path, _DAY).open() == [_POD, _cell(0), _cell(300)]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A limit on the size of files fails writes in the middle, as a full disk does."""
    program = (
        "import resource, signal, sys, datetime, pathlib\n"
        "from base.errors import StoreError\n"
        "from tests.trainer.sampling.test_journal import _DAY, _POD, _cell\n"
        "from trainer.sampling.journal import Journal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal = Journal(pathlib.Path(sys.argv[1]), _DAY)\n"
        "journal.open()\n"
        "journal.append([_POD, _cell(0)])\n"
        "size = journal.path.stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    journal.append([_cell(300)])\n"
        "except StoreError as error:\n"
        "    print(error)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "journal.append([_cell(600)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "File too large" in done.stdout
    assert Journal(tmp_path, _DAY).open() == [_POD, _cell(0), _cell(600)]


def test_a_killed_process_loses_no_cell_that_was_closed(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from tests.trainer.sampling.test_journal import _DAY, _POD, _cell\n"
        "from trainer.sampling.journal import Journal\n"
        "journal = Journal(pathlib.Path(sys.argv[1]), _DAY)\n"
        "journal.open()\n"
        "journal.append([_POD])\n"
        "for number in range(100_000):\n"
        "    journal.append([_cell(300 * number)])\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        path = tmp_path / "recording" / f"{_DAY}.cells"
        assert eventually(lambda: path.exists() and path.stat().st_size > 2_000, 60)
        process.send_signal(signal.SIGKILL)
        written = process.stdout.read().split()
    found = Journal(tmp_path, _DAY).open()
    assert found[0] == _POD
    assert len(found) - 1 >= len(written) > 10
    assert found[1:] == [_cell(300 * number) for number in range(len(found) - 1)]


def test_a_directory_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "recording").write_text("a file")
    with pytest.raises(StoreError, match="File exists"):
        Journal(tmp_path, _DAY).open()
