"""What processes use, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

_LONGEST_UNREST = 30.0


def cpu_seconds(process: int) -> float:
    """Used by a process so far, in user and kernel mode."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of(processes: Mapping[str, int]) -> dict[str, float]:
    """`cpu_seconds` of each."""
    return {name: cpu_seconds(process) for name, process in processes.items()}


def resident_bytes(process: int) -> int:
    """Memory in use."""
    return _bytes_of(process, "status", "VmRSS")


def proportional_bytes(process: int) -> int:
    """Memory in use, of pages that several processes share only its part (PSS, proc(5))."""
    return _bytes_of(process, "smaps_rollup", "Pss")


def peak_bytes(process: int) -> int:
    """The most memory that was in use."""
    return _bytes_of(process, "status", "VmHWM")


def child_named(name: str) -> int:
    """The process of this name that this one has started. Raises LookupError."""
    for process in _children():
        if Path(f"/proc/{process}/comm").read_text().strip() == name:
            return process
    raise LookupError(f"there is no child process {name}")


def wait_until_at_rest(process: int) -> None:
    """It is ready before it has looked through all nodes for its figures, which takes seconds once a minute."""
    deadline, before = time.monotonic() + _LONGEST_UNREST, cpu_seconds(process)
    while time.monotonic() < deadline:
        time.sleep(1.0)
        now = cpu_seconds(process)
        if now - before < 0.1:
            return
        before = now


def _children() -> Iterable[int]:
    for task in Path("/proc/self/task").iterdir():
        try:
            yield from map(int, (task / "children").read_text().split())
        except OSError:  # the thread has just ended
            continue


def _bytes_of(process: int, file: str, field: str) -> int:
    for line in Path(f"/proc/{process}/{file}").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    raise LookupError(f"/proc/{process}/{file} has no {field}")
