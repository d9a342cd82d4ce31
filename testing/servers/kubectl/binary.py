"""Where kubectl comes from: PATH, our cache, or built from go/go.mod, which pins the version of the control plane."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from testing.servers.program_cache import built_once, cache_directory, run_go

_MODULE = Path(__file__).with_name("go")


def kubectl() -> Path:
    """The program; the first call on a machine without one builds it."""
    if found := shutil.which("kubectl"):
        return Path(found)
    return built_once(cache_directory() / f"kubectl-{_digest()}" / "kubectl", _build)


def _digest() -> str:
    """Of everything a build depends on."""
    files = [_MODULE / name for name in ("go.mod", "go.sum", "main.go")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def _build(path: Path) -> None:
    flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
    otherwise = "install kubectl (https://kubernetes.io/docs/tasks/tools/)"
    run_go("kubectl", ["build", *flags, "-o", path, "."], directory=_MODULE, otherwise=otherwise)
