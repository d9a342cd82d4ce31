"""kube-controller-manager: from PATH, our cache, or built from go/go.mod, which pins its version."""

from __future__ import annotations

from pathlib import Path

from testing.servers.program_cache import program_of


def kube_controller_manager() -> Path:
    """The program; the first call on a machine without one builds it."""
    otherwise = "put kube-controller-manager on PATH (https://kubernetes.io/releases/download/)"
    module = Path(__file__).with_name("go")
    name = "kube-controller-manager"
    return program_of(module, name, f"k8s.io/kubernetes/cmd/{name}", otherwise=otherwise)
