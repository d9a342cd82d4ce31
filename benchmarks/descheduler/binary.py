"""descheduler: from PATH, our cache, or built from go/go.mod, which pins its version."""

from __future__ import annotations

from pathlib import Path

from testing.servers.program_cache import program_of


def descheduler() -> Path:
    """The program; the first call on a machine without one builds it."""
    otherwise = "put descheduler on PATH (https://github.com/kubernetes-sigs/descheduler/releases)"
    module = Path(__file__).with_name("go")
    return program_of(module, "descheduler", ".", otherwise=otherwise)
