from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

import pytest

from testing.processes.process_figures import child_named, cpu_of, peak_bytes, resident_bytes


def eventually(find: Callable[[], int]) -> int:
    deadline = time.monotonic() + 60
    while True:
        try:
            return find()
        except LookupError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def test_a_child_is_found_by_name_and_gone_when_it_has_ended() -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert eventually(lambda: child_named("sleep")) == child.pid  # not at once: it begins as a copy of this process
    finally:
        child.kill()
        child.wait()
    with pytest.raises(LookupError, match="sleep"):
        child_named("sleep")


def test_this_process_uses_memory_and_cpu() -> None:
    block = bytearray(64 * 2**20)
    assert 64 * 2**20 < resident_bytes(os.getpid()) <= peak_bytes(os.getpid())
    del block
    before = cpu_of({"own": os.getpid()})["own"]
    n = 0
    while cpu_of({"own": os.getpid()})["own"] <= before and n < 10**9:
        n += 1
    assert cpu_of({"own": os.getpid()})["own"] > before
