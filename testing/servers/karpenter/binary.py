"""Karpenter with its kwok provider, and its definitions: built from go/go.mod, which pins the version."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from testing.servers.program_cache import program_of, run_go

_MODULE: Final = Path(__file__).with_name("go")
_OTHERWISE: Final = "put karpenter-kwok on PATH (https://github.com/kubernetes-sigs/karpenter, package kwok)"


def karpenter() -> Path:
    """The program; the first call on a machine without one builds it."""
    return program_of(_MODULE, "karpenter-kwok", "sigs.k8s.io/karpenter/kwok", otherwise=_OTHERWISE)


def definitions() -> list[Path]:
    """Files of the custom resource definitions of this version."""
    arguments = ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter"]
    run_go("Karpenter", ["mod", "download", "sigs.k8s.io/karpenter"], directory=_MODULE, otherwise=_OTHERWISE)
    source = Path(run_go("Karpenter", arguments, directory=_MODULE, otherwise=_OTHERWISE).strip())
    return sorted([*source.glob("pkg/apis/crds/*.yaml"), *source.glob("kwok/apis/crds/*.yaml")])
