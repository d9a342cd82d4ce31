"""helm: from PATH, our cache, or built from go/go.mod, which pins its version."""

from __future__ import annotations

from pathlib import Path

from testing.servers.program_cache import program_of


def helm() -> Path:
    """The program; the first call on a machine without one builds it."""
    otherwise = "install Helm (https://helm.sh/docs/intro/install/)"
    return program_of(Path(__file__).with_name("go"), "helm", "helm.sh/helm/v3/cmd/helm", otherwise=otherwise)
