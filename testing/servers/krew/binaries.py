"""krew, and the check of manifests that its index runs: from PATH, our cache, or built from go/go.mod."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from testing.servers.program_cache import program_of

_MODULE: Final = Path(__file__).with_name("go")
_OTHERWISE: Final = "install Krew (https://krew.sigs.k8s.io/docs/user-guide/setup/install/)"


def krew() -> Path:
    """The program; the first call on a machine without one builds it."""
    return program_of(_MODULE, "kubectl-krew", "sigs.k8s.io/krew/cmd/krew", otherwise=_OTHERWISE)


def validate_krew_manifest() -> Path:
    """Checks a manifest; the first call on a machine without it builds it."""
    name = "validate-krew-manifest"
    return program_of(_MODULE, name, f"sigs.k8s.io/krew/cmd/{name}", otherwise=_OTHERWISE)
