"""kubectl: from PATH, our cache, or built from go/go.mod, which pins the version of the control plane."""

from __future__ import annotations

from pathlib import Path

from testing.servers.program_cache import program_of


def kubectl() -> Path:
    """The program; the first call on a machine without one builds it."""
    otherwise = "install kubectl (https://kubernetes.io/docs/tasks/tools/)"
    return program_of(Path(__file__).with_name("go"), "kubectl", ".", otherwise=otherwise)
