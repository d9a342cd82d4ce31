"""What is freed goes back to the operating system, also after arrays of all sizes came and went."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from serving.freed_memory import give_back, limit_arenas

ROOT = Path(__file__).parents[2]
_COMES_AND_GOES = """
import os, threading
import numpy as np
from testing.processes.process_figures import resident_bytes
from serving.freed_memory import give_back, limit_arenas
{limit}
before = resident_bytes(os.getpid())
np.ones(4 * 2**20)  # 32 MiB, freed at once: from now on glibc maps nothing that is smaller by itself
def work():
    held = [np.ones(2**18) for _ in range(40)]  # 2 MiB each
    kept.append([row[:1].copy() for row in held])
kept = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(resident_bytes(os.getpid()) - before)
"""


def _left(limit: str) -> int:
    said = subprocess.run(
        [sys.executable, "-c", _COMES_AND_GOES.format(limit=limit)],
        cwd=ROOT, check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return int(said.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is asked")
def test_large_arrays_of_threads_leave_little_behind() -> None:
    assert _left("assert limit_arenas()") < 20 * 2**20


def test_giving_back_and_limiting_harm_nobody() -> None:
    limit_arenas()
    give_back()
    assert bytearray(10 * 2**20)[-1] == 0
